"""What is wrong with a scenario."""

from __future__ import annotations


class ScenarioError(ValueError):
    """A scenario that cannot be run; the text names the object, file or name and the remedy."""
