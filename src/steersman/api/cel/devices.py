"""Expressions that choose devices: the selectors of ResourceClaims, their templates and DeviceClasses.

They see one variable, `device`, and may name a value with `cel.bind(name, value, expression)`. Source of the facts:
k8s.io/dynamic-resource-allocation `cel/compile.go`, the limits of resource/v1, and validateCELSelector in kubernetes
`pkg/apis/resource/validation`, release 1.36 with its default features (DRAConsumableCapacity is on,
DRAListTypeAttributes off).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final, NamedTuple

from steersman.api.cel.environment import Environment
from steersman.api.cel.estimate import most
from steersman.api.cel.faults import CompileError
from steersman.api.cel.types import ANY, BOOL, OPAQUE, STRING, Type, map_of, object_of

DEVICE: Final = "kubernetes.DRADevice"
MAX_COST: Final = 1_000_000
"""Worst cost of an expression (CELSelectorExpressionMaxCost)."""
MAX_NAMED: Final = 32
"""Attributes, and capacities, of a device: so many domains there may be, and so many names in one."""
MAX_DOMAIN: Final = 63
MAX_NAME: Final = 32
MAX_DRIVER: Final = 63
MAX_VALUE: Final = 64
"""Characters of an attribute's value."""
FAULTS_KEPT: Final = 1024
"""Texts whose verdict is remembered: claims of one template all have the same."""
COSTLY: Final = "too complex, exceeds cost limit"


class Fault(NamedTuple):
    """What is wrong with an expression. `costly`: it is one, and could take too long."""

    detail: str
    costly: bool = False


@cache
def environment() -> Environment:
    """What selectors may use."""
    domain = Type("string", bound=MAX_DOMAIN)
    name = Type("string", bound=MAX_NAME)
    value = Type(ANY.kind, name=ANY.name, bound=MAX_VALUE)
    device = object_of(DEVICE, {
        "driver": Type(STRING.kind, bound=MAX_DRIVER),
        "allowMultipleAllocations": Type(BOOL.kind, bound=1),
        "attributes": map_of(domain, map_of(name, value, MAX_NAMED), MAX_NAMED),
        "capacity": map_of(domain, map_of(name, OPAQUE["quantity"], MAX_NAMED), MAX_NAMED),
    })  # fmt: skip
    return Environment({"device": device}, {DEVICE: device}, binds=True)


@lru_cache(maxsize=FAULTS_KEPT)
def fault(text: str) -> Fault | None:
    """What is wrong with a selector's expression, in kube-apiserver's words; None when it is fine."""
    try:
        program = environment().compile(text)
    except CompileError as wrong:
        return Fault(f"compilation failed: {wrong}")
    found = program.type
    if found.kind != "bool" and found.name != ANY.name:
        shown = re.sub(rf"\b{ANY.name}\b", "google.protobuf.Any", str(found))
        return Fault(f"must evaluate to bool or the unknown type, not {shown}")
    if cost(text) > MAX_COST:
        return Fault(COSTLY, costly=True)
    return None


def cost(text: str) -> int:
    """The worst cost of an expression that compiles. Raises `CompileError`."""
    scope = environment()
    return most(scope.compile(text).root, scope.variables["device"], "device")
