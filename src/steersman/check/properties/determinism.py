"""Determinism: the same reads lead to the same writes."""

from __future__ import annotations

from typing import Final

from steersman.check.properties.about import About

ABOUT: Final = About(
    "non-determinism",
    "A reconcile that reads the same does the same: it depends on no chance, no clock, no order of a set and no "
    "arithmetic with resourceVersion but through its client.",
    "What depends on chance cannot be checked, is hard to debug, and writes again whenever chance says so.",
    "random, time or uuid used directly; iteration over a set; a module's global; resourceVersion compared by size.",
    "c.random, c.now, c.after and c.timestamp; sorted(); c.memory; compare resourceVersions for equality only.",
    "",
    (59,),
    ("non-determinism", "set-order", "resource-version"),
)
