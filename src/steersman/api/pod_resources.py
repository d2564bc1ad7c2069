"""What a pod asks for in sum: requests or limits over its containers, as quota and limit ranges count them.

Init containers run one after the other, before the others, and beside the sidecars started so far. Source of the facts:
component-helpers `resource/helpers.go` and the limit ranger's own sums, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api import quantity
from steersman.api.quantity import Quantity
from steersman.kernel.value import EMPTY

Amounts = dict[str, Quantity]
POD_LEVEL: Final = ("cpu", "memory")
"""Resources that spec.resources may give for the whole pod, with every size of huge pages."""


def totals(spec: Mapping[str, Any], part: str, huge: bool = True) -> Amounts:
    """Resource → amount of `part` ("requests" or "limits"); overhead is not in it.

    `huge`: whether huge pages given for the whole pod count (they do not for limit ranges).
    """
    out: Amounts = {}
    for container in spec.get("containers") or ():
        add(out, of(container, part))
    sidecars: Amounts = {}
    initial: Amounts = {}
    for container in spec.get("initContainers") or ():
        need = of(container, part)
        if container.get("restartPolicy") == "Always":
            add(out, need)
            add(sidecars, need)
            need = sidecars
        else:
            add(need, sidecars)
        raise_to(initial, need)
    raise_to(out, initial)
    for name, amount in of(spec, part).items():
        if name in POD_LEVEL or (huge and name.startswith("hugepages-")):
            out[name] = amount
    return out


def of(holder: Mapping[str, Any], part: str) -> Amounts:
    """`resources.PART` of a container or of a whole pod's spec."""
    return parsed((holder.get("resources") or EMPTY).get(part))


def parsed(amounts: Mapping[str, Any] | None) -> Amounts:
    """A resource list, its quantities read."""
    return {name: quantity.parse(text) for name, text in (amounts or EMPTY).items()}


def add(into: Amounts, amounts: Amounts) -> None:
    """Adds in place."""
    for name, amount in amounts.items():
        into[name] = into[name] + amount if name in into else amount


def raise_to(into: Amounts, amounts: Amounts) -> None:
    """The greater of both, in place."""
    for name, amount in amounts.items():
        if name not in into or amount > into[name]:
            into[name] = amount
