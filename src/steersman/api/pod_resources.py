"""What a pod asks for in sum: requests or limits over its containers, as quota and limit ranges count them.

Init containers run one after the other, before the others, and beside the sidecars started so far. Source of the facts:
component-helpers `resource/helpers.go` and the limit ranger's own sums, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from steersman.api import quantity
from steersman.api.quantity import Quantity
from steersman.kernel.value import EMPTY

Amounts = dict[str, Quantity]
Number = TypeVar("Number", int, Quantity)
POD_LEVEL: Final = ("cpu", "memory")
"""Resources that spec.resources may give for the whole pod, with every size of huge pages."""


def totals(spec: Mapping[str, Any], part: str, huge: bool = True) -> Amounts:
    """Resource → amount of `part` ("requests" or "limits"); overhead is not in it.

    `huge`: whether huge pages given for the whole pod count (they do not for limit ranges).
    """
    out = in_sum(spec, lambda container: of(container, part))
    for name, amount in of(spec, part).items():
        if name in POD_LEVEL or (huge and name.startswith("hugepages-")):
            out[name] = amount
    return out


def in_sum(spec: Mapping[str, Any], need_of: Callable[[Mapping[str, Any]], dict[str, Number]]) -> dict[str, Number]:
    """The sum over containers and sidecars, or the greatest need of any moment of initialisation if that is more.

    `need_of` gives what one container needs, in a dict of its own.
    """
    out: dict[str, Number] = {}
    for container in spec.get("containers") or ():
        add(out, need_of(container))
    sidecars: dict[str, Number] = {}  # those started so far: each later init container runs beside them
    initial: dict[str, Number] = {}
    for container in spec.get("initContainers") or ():
        need = need_of(container)
        if container.get("restartPolicy") == "Always":
            add(out, need)
            add(sidecars, need)
            need = sidecars
        else:
            add(need, sidecars)
        raise_to(initial, need)
    raise_to(out, initial)
    return out


def of(holder: Mapping[str, Any], part: str) -> Amounts:
    """`resources.PART` of a container or of a whole pod's spec."""
    return parsed((holder.get("resources") or EMPTY).get(part))


def parsed(amounts: Mapping[str, Any] | None) -> Amounts:
    """A resource list, its quantities read."""
    return {name: quantity.parse(text) for name, text in (amounts or EMPTY).items()}


def add(into: dict[str, Number], amounts: Mapping[str, Number]) -> None:
    """Adds in place."""
    for name, amount in amounts.items():
        into[name] = into[name] + amount if name in into else amount


def raise_to(into: dict[str, Number], amounts: Mapping[str, Number]) -> None:
    """The greater of both, in place."""
    for name, amount in amounts.items():
        if name not in into or amount > into[name]:
            into[name] = amount
