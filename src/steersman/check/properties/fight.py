"""No fight over a field: no two writers undo each other for ever."""

from __future__ import annotations

from typing import Final

from steersman.check.properties.about import About

ABOUT: Final = About(
    "no fight over a field",
    "No two writers give the same field of the same object different values for ever. Both and the field are named.",
    "Each of them is right by itself, and passes its own tests; together they never end, and what depends on the field "
    "is torn both ways.",
    "An operator applies its whole desired object, replicas included, while an autoscaler sets them; a webhook adds "
    "what an operator takes away; a GitOps tool reverts what an operator adds.",
    "Let one own the field: apply only the fields that are yours, leave out what another decides, or let one take its "
    "value from the other's.",
    "A value that changes hands and then stays is no fight.",
    (94, 95, 98, 99),
)
