"""Totals for particular mechanisms: laws of the privacy loss, composed with every error bounded and added."""

from accord.accounting.accountant import PrivacyAccountant
from accord.accounting.curve_loss import CurveLoss, imported_loss
from accord.accounting.gaussian import gaussian_composition
from accord.accounting.losses import ExponentialLoss, GuaranteeLoss, LaplaceLoss, PrivacyLoss
from accord.accounting.noise_losses import ConcentratedLoss, DiscreteGaussianLoss, DiscreteLaplaceLoss, GaussianLoss
from accord.accounting.of_mechanisms import loss_of

__all__ = [
    "ConcentratedLoss",
    "CurveLoss",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "ExponentialLoss",
    "GaussianLoss",
    "GuaranteeLoss",
    "LaplaceLoss",
    "PrivacyAccountant",
    "PrivacyLoss",
    "gaussian_composition",
    "imported_loss",
    "loss_of",
]
