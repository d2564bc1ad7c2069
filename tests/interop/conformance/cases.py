"""All sequences."""

from __future__ import annotations

import importlib
import pkgutil

from tests.interop.conformance import families
from tests.interop.conformance.sequence import Case


def all_cases() -> list[Case]:
    """Every sequence, by name. Raises ValueError for a name that is there twice."""
    found: dict[str, Case] = {}
    for module in pkgutil.iter_modules(families.__path__):
        for case in importlib.import_module(f"{families.__name__}.{module.name}").CASES:
            if case.name in found or case.namespace in {other.namespace for other in found.values()}:
                raise ValueError(f"{case.name} is there twice")
            found[case.name] = case
    return [found[name] for name in sorted(found)]
