"""Rules that many kinds share: numbers, ports, names, labels, selectors, amounts.

A rule looks at one value and appends what is wrong with it to `out`, in Kubernetes' words.
Source of the facts: apimachinery `pkg/util/validation`, `pkg/api/validation`, `pkg/apis/meta/v1/validation`
and kubernetes `pkg/apis/core/validation`, release 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from steersman.api import names, quantity
from steersman.api.errors import ApiError, Cause
from steersman.api.label_select import LabelSelector, label_selector_causes
from steersman.kernel.value import EMPTY

Causes = list[Cause]
Object = Mapping[str, Any]

NEGATIVE: Final = "must be greater than or equal to 0"
NOT_POSITIVE: Final = "must be greater than zero"
IMMUTABLE: Final = "field is immutable"
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
MAX_INT32: Final = (1 << 31) - 1
MAX_KEY: Final = 253  # characters of a key in a ConfigMap or Secret
MAX_PORT_NAME: Final = 15  # RFC 6335
# Distinct names, keys and values of one process that are checked once; an entry is about 150 bytes.
CHECKED: Final = 1 << 14

_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_PERCENT: Final = re.compile(r"[0-9]{1,18}%")  # beyond, it is no number of 64 bits
_PORT_NAME: Final = re.compile(r"[-a-z0-9]+")
_CONTAINER_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD_RESOURCES: Final = _CONTAINER_RESOURCES | {
    *(f"{which}.{name}" for which in ("requests", "limits") for name in _CONTAINER_RESOURCES),
    *(
        "requests.storage",
        "storage",
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
    ),
    *("configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
}


@lru_cache(CHECKED)
def dns_label(text: str) -> tuple[str, ...]:
    """Problems of a DNS label, remembered."""
    return tuple(names.dns1123_label(text))


@lru_cache(CHECKED)
def dns_subdomain(text: str) -> tuple[str, ...]:
    """Problems of a DNS subdomain, remembered."""
    return tuple(names.dns1123_subdomain(text))


@lru_cache(CHECKED)
def qualified_name(text: str) -> tuple[str, ...]:
    """Problems of a qualified name, remembered."""
    return tuple(names.qualified_name(text))


@lru_cache(CHECKED)
def label_value(text: str) -> tuple[str, ...]:
    """Problems of the value of a label, remembered."""
    return tuple(names.label_value(text))


def named(out: Causes, path: str, text: str, check: Callable[[str], Iterable[str]]) -> None:
    """`text` must pass a check of names."""
    out.extend(Cause.invalid(path, text, problem) for problem in check(text))


def segments(out: Causes, path: str, holder: Object, *fields: str) -> None:
    """Required texts that have to fit into a URL."""
    for field in fields:
        text = holder.get(field)
        if not text:
            out.append(Cause.required(f"{path}.{field}"))
        else:
            named(out, f"{path}.{field}", text, names.path_segment)


def no_backsteps(out: Causes, path: str, text: str) -> None:
    """A path of files that does not climb out of where it starts."""
    if ".." in text.split("/"):
        out.append(Cause.invalid(path, text, "must not contain '..'"))


def descending_path(out: Causes, path: str, text: str) -> None:
    """A path of files below some folder."""
    if text.startswith("/"):
        out.append(Cause.invalid(path, text, "must be a relative path"))
    no_backsteps(out, path, text)


def domain_path(out: Causes, path: str, text: str) -> None:
    """A name such as example.com/controller."""
    host, _, rest = text.partition("/")
    if not text:
        out.append(Cause.required(path))
    elif not host or not rest:
        out.append(Cause.invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    else:
        out.extend(Cause.invalid(path, host, problem) for problem in dns_subdomain(host))
        if not _PATH.fullmatch(rest):
            detail = f"Invalid path (regex used for validation is '{_PATH.pattern}')"
            out.append(Cause.invalid(path, rest, detail))


def not_negative(out: Causes, path: str, holder: Object, *fields: str) -> None:
    """Numbers that may be absent and must not be negative."""
    for field in fields:
        number = holder.get(field)
        if number is not None and number < 0:
            out.append(Cause.invalid(f"{path}.{field}", number, NEGATIVE))


def chosen(out: Causes, path: str, text: Any, supported: tuple[str, ...]) -> None:
    """`text` must be one of a closed list; an absent one is none of this rule's business."""
    if text is not None and text not in supported:
        out.append(Cause.unsupported(path, text, supported) if text else Cause.required(path))


def port_number(out: Causes, path: str, number: int) -> None:
    """A port of TCP or UDP."""
    if not 1 <= number <= 65535:
        out.append(Cause.invalid(path, number, "must be between 1 and 65535, inclusive"))


def port_name_problems(text: str) -> list[str]:
    """Problems of the name of a container's port."""
    problems = []
    if len(text) > MAX_PORT_NAME:
        problems.append(f"must be no more than {MAX_PORT_NAME} characters")
    if not _PORT_NAME.fullmatch(text):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def port(out: Causes, path: str, value: Any) -> None:
    """A port given by its number or its name."""
    if isinstance(value, str):
        named(out, path, value, port_name_problems)
    elif isinstance(value, int):
        port_number(out, path, value)


def percent(value: Any) -> int:
    """The number in an int or a percentage; 0 for anything else."""
    if isinstance(value, str):
        return int(value[:-1]) if _PERCENT.fullmatch(value) else 0
    return value if isinstance(value, int) else 0


def count_or_percent(out: Causes, path: str, value: Any) -> None:
    """A number that is not negative, or a percentage."""
    if isinstance(value, str) and not _PERCENT.fullmatch(value):
        detail = (
            "a valid percent string must be a numeric string followed by an ending '%' "
            "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        )
        out.append(Cause.invalid(path, value, detail))
    elif isinstance(value, int) and value < 0:
        out.append(Cause.invalid(path, value, NEGATIVE))


def at_most_all(out: Causes, path: str, value: Any) -> None:
    """A percentage of at most 100."""
    if isinstance(value, str) and percent(value) > 100:
        out.append(Cause.invalid(path, value, "must not be greater than 100%"))


def config_key_problems(text: str) -> list[str]:
    """Problems of a key in a ConfigMap or a Secret."""
    problems = []
    if len(text) > MAX_KEY:
        problems.append(f"must be no more than {MAX_KEY} characters")
    if not _CONFIG_KEY.fullmatch(text):
        problems.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  "
            "or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if text in (".", ".."):
        problems.append(f"must not be '{text}'")
    elif text.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def labels(out: Causes, path: str, found: Any) -> None:
    """Label keys and values."""
    for key, value in (found or EMPTY).items():
        out.extend(Cause.invalid(path, key, problem) for problem in qualified_name(key))
        out.extend(Cause.invalid(path, value, problem) for problem in label_value(value))


def selector(out: Causes, path: str, found: Any) -> LabelSelector | None:
    """A label selector object, compiled; None when it is wrong."""
    causes = label_selector_causes(found, path)
    if causes:
        out.extend(causes)
        return None
    try:
        return LabelSelector.compile(found, path)
    except ApiError as error:  # a limit of ours that Kubernetes does not have
        out.extend(error.causes)
        return None


def amount(out: Causes, path: str, name: str, text: Any) -> None:
    """The amount of a resource: not negative, and whole where the resource comes in pieces."""
    try:
        found = quantity.parse(text)
    except quantity.QuantityError as error:
        out.append(Cause.invalid(path, text, str(error)))
        return
    if found.nano < 0:
        out.append(Cause.invalid(path, str(found), NEGATIVE))
    if found.nano % quantity.NANO and (name == "pods" or not native(name)):
        out.append(Cause.invalid(path, str(found), "must be an integer"))


def native(resource: str) -> bool:
    """A resource that Kubernetes itself defines: with no prefix, or with its own."""
    return "/" not in resource or "kubernetes.io/" in resource


def quota_resource(resource: str) -> bool:
    """Whether a name without a prefix is a resource that quotas know."""
    huge = ("hugepages-", "requests.hugepages-")
    return (resource in _STANDARD_RESOURCES and resource != "storage") or resource.startswith(huge)


def overcommitted(resource: str) -> bool:
    """Whether more of it may be promised (limits) than is set aside (requests)."""
    return native(resource) and not resource.startswith("hugepages-")


def container_resource(out: Causes, path: str, resource: str) -> None:
    """The name of a resource that containers may ask for."""
    problems = qualified_name(resource)
    if problems:
        out.extend(Cause.invalid(path, resource, problem) for problem in problems)
        return
    huge = resource.startswith("hugepages-")
    if "/" not in resource:
        if resource not in _STANDARD_RESOURCES and not huge:
            out.append(Cause.invalid(path, resource, "must be a standard resource type or fully qualified"))
        if resource not in _CONTAINER_RESOURCES and not huge:
            out.append(Cause.invalid(path, resource, "must be a standard resource for containers"))
    elif not native(resource) and resource.startswith("requests."):
        out.append(Cause.invalid(path, resource, "doesn't follow extended resource name standard"))


def requirements(out: Causes, path: str, found: Any) -> None:
    """A ResourceRequirements object: known names, sound amounts, requests within limits."""
    if not found:
        return
    limits, requests = found.get("limits") or EMPTY, found.get("requests") or EMPTY
    for name, text in limits.items():
        container_resource(out, f"{path}.limits[{name}]", name)
        amount(out, f"{path}.limits[{name}]", name, text)
    for name, text in requests.items():
        container_resource(out, f"{path}.requests[{name}]", name)
        amount(out, f"{path}.requests[{name}]", name, text)
        if name in limits:
            _within(out, f"{path}.requests", name, text, limits[name])
        elif not overcommitted(name):
            detail = "Limit must be set for non overcommitable resources"
            out.append(Cause.required(f"{path}.limits", detail))
    asked = {*limits, *requests}
    if asked and not asked & {"cpu", "memory"} and any(name.startswith("hugepages-") for name in asked):
        out.append(Cause.forbidden(path, "HugePages require cpu or memory"))


def _within(out: Causes, path: str, name: str, request: Any, limit: Any) -> None:
    try:
        wanted, most = quantity.parse(request), quantity.parse(limit)
    except quantity.QuantityError:
        return  # told already
    if wanted != most and not overcommitted(name):
        out.append(Cause.invalid(path, str(wanted), f"must be equal to {name} limit of {most}"))
    elif most < wanted:
        out.append(Cause.invalid(path, str(wanted), f"must be less than or equal to {name} limit of {most}"))
