"""Nodes that drive pods away, and nodes that are gone."""

from __future__ import annotations

from typing import Any, Final

from tests.run.scenarios.making import NAMESPACE, Step, create, made, patch

NODE: Final = "v1/Node"
TAINT: Final = {"key": "a", "value": "b", "effect": "NoExecute"}


def pod(name: str, node: str = "node-0", finalizers: tuple[str, ...] = (), **spec: Any) -> dict[str, Any]:
    out = made("v1/Pod", name, nodeName=node, containers=[{"name": "c", "image": "i"}], **spec)
    out["metadata"]["finalizers"] = list(finalizers)
    return out


def tolerates(**more: Any) -> dict[str, Any]:
    return {"tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", **more}]}


def taint(node: str, *taints: dict[str, Any]) -> Step:
    return lambda c: c.patch(c.key(NODE, node), {"spec": {"taints": list(taints)}})


SCENARIOS: Final[dict[str, tuple[Step, ...]]] = {
    "node-taints": (
        create(
            pod("plain"), pod("stays", **tolerates()), pod("waits", **tolerates(tolerationSeconds=2)),
            pod("long", **tolerates(tolerationSeconds=600)), pod("other", "node-1"),
        ),
        taint("node-0", TAINT),
        taint("node-0"),
        patch(NODE, {"spec": {"unschedulable": True}}, "node-0"),
        patch(NODE, {"spec": {"unschedulable": None}}, "node-0"),
    ),
    "node-lost": (
        create(pod("web", "node-2"), pod("held", "node-2", ("example.com/kept",)),
               made("v1/Pod", "apart", nodeSelector={"no": "where"}, containers=[{"name": "c", "image": "i"}])
               | {"metadata": {"name": "apart", "namespace": NAMESPACE, "finalizers": ["example.com/kept"]}}),
        lambda c: [c.delete(c.key(NODE, "node-2")), c.delete(c.key("v1/Pod", "apart", NAMESPACE))],
    ),
}  # fmt: skip
