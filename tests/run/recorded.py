"""Recorded scenarios, played again with our controllers."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from steersman.controllers import autoscaler, job, legacy_tokens, podgc
from tests.run import scenarios

SECONDS: Final = 8.0
RECORDED: Final = scenarios.load()


@contextmanager
def hurried() -> Iterator[None]:
    """What is done after a while is done after a second; what is done is the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(autoscaler, "PERIOD", 1)
        patch.setattr(job, "FIRST_BACKOFF", 1)
        patch.setattr(podgc, "QUARANTINE", 1)
        patch.setattr(legacy_tokens, "UNUSED", 1)
        yield


def replay(root: Any, name: str, virtual_nodes: int = 3) -> None:
    """Plays a scenario in a workspace of its own. Fails with what differs."""
    plane = root.workspace(virtual_nodes=virtual_nodes)
    c = plane.client
    scenarios.BEFORE.get(name, lambda c: None)(c)
    c.wait(lambda: c.list("v1/ServiceAccount", scenarios.NAMESPACE), SECONDS, "the default account")

    def settled(c: Any, step: int) -> list[str]:
        wanted = RECORDED[name][step]
        try:
            c.wait(lambda: scenarios.seen(c) == wanted, SECONDS)
        except TimeoutError:
            differs = difflib.unified_diff(
                wanted, scenarios.seen(c), "kube-controller-manager", "ours", lineterm="", n=0
            )
            pytest.fail(f"step {step}:\n" + "\n".join(differs))
        return wanted

    assert len(list(scenarios.play(c, name, settled))) == len(RECORDED[name])
    plane.forget()
