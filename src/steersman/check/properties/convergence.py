"""Convergence: every fair run comes to rest, and nobody fails there for ever with a request that can never be right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.check.properties.about import About
from steersman.check.rest import Ended, failing
from steersman.kernel.world import World

ABOUT: Final = About(
    "convergence",
    "Every fair run comes to a state in which nothing changes any more, and where nobody makes a request for ever that "
    "the API server can only refuse (Invalid, BadRequest).",
    "A system that does not come to rest does not reach what it was asked for; one whose only write is refused each "
    "time never will.",
    "A desired state is built from input that nobody validated: a name that is too long, a number below its minimum, "
    "a change of an immutable field.",
    "Validate at the edge (the definition's schema, an admission policy), report in a condition what cannot be done, "
    "and delete and re-create what is immutable.",
    "Refusals that somebody else can lift are not counted: Forbidden (a quota), NotFound, Conflict, AlreadyExists. "
    "Runs that change things for ever are told by 'no livelock' and 'no fight over a field'.",
    (38, 48, 53),
)
HOPELESS: Final = ("Invalid: ", "BadRequest: ")
"""How the errors begin that trying again cannot mend."""


def wrong(world: World, ended: Iterable[Ended]) -> str:
    """Who fails for ever; "" when nobody does. `ended`: the reconciles that end at rest."""
    return failing(world, [end for end in ended if end.error is None or end.error.startswith(HOPELESS)])
