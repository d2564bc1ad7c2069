"""Devices that drive away the pods which hold them."""

from __future__ import annotations

from typing import Any, Final

from tests.run.scenarios.making import LONG_AGO, Step, create, made, together

DRIVER: Final = "example.com"
SLICES, CLAIMS = "resource.k8s.io/v1/ResourceSlice", "resource.k8s.io/v1/ResourceClaim"
TAINT: Final = {"key": "broken", "value": "fan", "effect": "NoExecute"}
OLD: Final = {**TAINT, "timeAdded": LONG_AGO}


def rack(*taints: dict[str, Any], **pool: Any) -> dict[str, Any]:
    """Four devices of node-0, all but the last with these taints."""
    names = ("a", "b", "c")
    spec = {
        "driver": DRIVER, "nodeName": "node-0",
        "pool": {"name": "rack", "generation": 1, "resourceSliceCount": 1, **pool},
        "devices": [*({"name": name, **({"taints": list(taints)} if taints else {})} for name in names), {"name": "d"}],
    }  # fmt: skip
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "rack"}, "spec": spec}


def tainted(*taints: dict[str, Any]) -> Step:
    return lambda c: c.patch(c.key(SLICES, "rack"), {"spec": rack(*taints)["spec"]})


def uses(name: str, device: str, **tolerates: Any) -> Step:
    """A pod on node-0 that holds a device, as the scheduler leaves it."""
    given = {"key": "broken", "operator": "Exists", "effect": "NoExecute", **tolerates}
    exactly = {"deviceClassName": "gpu", **({"tolerations": [given]} if tolerates else {})}
    result = {"request": "r", "driver": DRIVER, "pool": "rack", "device": device}

    def step(c: Any) -> None:
        claim = c.create(made(CLAIMS, name, devices={"requests": [{"name": "r", "exactly": exactly}]}))
        refs = [{"name": "gpu", "resourceClaimName": name}]
        pod = c.create(made("v1/Pod", name, nodeName="node-0", containers=[{"name": "c", "image": "i"}],
                            resourceClaims=refs))  # fmt: skip
        held = {**result, **({"tolerations": [given]} if tolerates else {})}
        holder = {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
        c.patch_status(claim, {"allocation": {"devices": {"results": [held]}}, "reservedFor": [holder]})

    return step


SCENARIOS: Final[dict[str, tuple[Step, ...]]] = {
    "device-taints": (
        together(
            create(rack()), uses("plain", "a"), uses("late", "b", tolerationSeconds=600),
            uses("stays", "c", operator="Exists"), uses("other", "d"),
        ),
        tainted({**TAINT, "effect": "NoSchedule"}),
        tainted(TAINT),
        tainted(),
        tainted(OLD),
    ),
}  # fmt: skip
