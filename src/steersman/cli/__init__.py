"""The command line, one file a verb."""

from steersman.cli.app import main

__all__ = ["main"]
