"""The virtual nodes of a running control plane, as Node objects."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from steersman.api.errors import AlreadyExists
from steersman.api.times import MICRO, time_text
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.nodes.component import node_object
from steersman.run.head import Heads

MANAGER = "kubelet"


async def make_nodes(heads: Heads, count: int) -> None:
    """Makes node-0, node-1, … up to `count` nodes where they are missing. Nodes beyond, of an earlier start, stay:
    pods may be on them, and `kubectl delete node` takes them away."""
    await asyncio.gather(*[_make(heads, f"node-{number}") for number in range(count)])


async def _make(heads: Heads, name: str) -> None:
    """A node is made without a status, as a kubelet registers itself, and then says what it is."""
    key = Key("", "Node", "", name)
    if heads.store.get(key) is not None:
        return
    node = node_object(name, time=time_text(heads.now() // MICRO))
    actor = f"system:node:{name}"
    with suppress(AlreadyExists):
        await heads.write(Request("create", key, node, actor=actor, manager=MANAGER))
        await heads.write(Request("update", key, node, "status", actor=actor, manager=MANAGER))
