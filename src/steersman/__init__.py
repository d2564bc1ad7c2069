"""Steersman: a control plane you can check, simulate and run.

    import steersman as sm

    class Surge(sm.Controller):
        kind = "apps/v1/Deployment"
        def reconcile(self, c, key): ...

    def test_rollout():
        w = sm.Scenario()
        w.run(Surge)
        sm.check(w, lag=1, crashes=1).assert_holds()

Names are loaded when they are first used, so that `import steersman` and the command line start quickly.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steersman import controllers, testing
    from steersman.api.client import Client
    from steersman.api.controller import Controller
    from steersman.api.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound
    from steersman.check import Scenario, State, Verdict, check
    from steersman.kernel.object import Key
    from steersman.kernel.value import ABSENT, freeze, thaw
    from steersman.sim import simulate

_HOME = {
    "ABSENT": "steersman.kernel.value",
    "AlreadyExists": "steersman.api.errors",
    "ApiError": "steersman.api.errors",
    "Client": "steersman.api.client",
    "Conflict": "steersman.api.errors",
    "Controller": "steersman.api.controller",
    "Forbidden": "steersman.api.errors",
    "Invalid": "steersman.api.errors",
    "Key": "steersman.kernel.object",
    "NotFound": "steersman.api.errors",
    "Scenario": "steersman.check",
    "State": "steersman.check",
    "Verdict": "steersman.check",
    "freeze": "steersman.kernel.value",
    "simulate": "steersman.sim",
    "thaw": "steersman.kernel.value",
}
_MODULES = ("check", "controllers", "testing")

__all__ = [
    "ABSENT",
    "AlreadyExists",
    "ApiError",
    "Client",
    "Conflict",
    "Controller",
    "Forbidden",
    "Invalid",
    "Key",
    "NotFound",
    "Scenario",
    "State",
    "Verdict",
    "check",
    "controllers",
    "freeze",
    "simulate",
    "testing",
    "thaw",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is not None:
        found = getattr(importlib.import_module(home), name)
        globals()[name] = found
        return found
    if name in _MODULES:
        return importlib.import_module(f"steersman.{name}")
    raise AttributeError(f"module 'steersman' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
