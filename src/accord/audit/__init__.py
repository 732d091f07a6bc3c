"""How much privacy a mechanism loses for certain: lower bounds on epsilon, by enumeration or from runs."""

from accord.audit.exact import Evidence, audit_laws
from accord.audit.sampled import audit_runs

__all__ = ["Evidence", "audit_laws", "audit_runs"]
