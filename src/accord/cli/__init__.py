"""The command line: parsing and printing; what is done stands in `accord.tables` and `accord.synthesis`."""

from accord.cli.app import main

__all__ = ["main"]
