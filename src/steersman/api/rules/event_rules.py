"""What Events must look like: those that say when they happened (`eventTime`) must also say who reports them.

Older ones, without it, may leave everything out. Source of the facts: kubernetes `pkg/apis/core/validation/events.go`,
release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api.errors import Cause
from steersman.api.rules import rules
from steersman.api.rules.rules import Causes
from steersman.kernel.value import EMPTY

REPORTER: Final = "reportingComponent"
MAX_INSTANCE: Final = 128
MAX_ACTION: Final = 128
MAX_REASON: Final = 128
MAX_NOTE: Final = 1024
_LIMITS: Final = (("reportingInstance", MAX_INSTANCE), ("action", MAX_ACTION), ("reason", MAX_REASON))


def placed(out: Causes, meta: Mapping[str, Any], _spec: Mapping[str, Any], rest: Mapping[str, Any]) -> None:
    """An Event is in the namespace of its object, those of objects without one in `default`."""
    at = (rest.get("involvedObject") or EMPTY).get("namespace") or ""
    here = meta.get("namespace") or ""
    homeless = ("default", "kube-system") if rest.get("eventTime") else ("default",)
    if (not at and here not in homeless) or (at and at != here and not rest.get("eventTime")):
        out.append(Cause.invalid("involvedObject.namespace", at, "does not match event.namespace"))


def event(out: Causes, _name: str, parts: Mapping[str, Any]) -> None:
    """An Event of the core group, whole."""
    if not parts.get("eventTime"):
        return
    reporter = parts.get(REPORTER) or ""
    if not reporter:
        out.append(Cause.required(REPORTER))
    rules.named(out, REPORTER, reporter, rules.qualified_name)
    for field, limit in _LIMITS:
        text = parts.get(field) or ""
        if not text:
            out.append(Cause.required(field))
        if len(text) > limit:
            out.append(Cause.invalid(field, "", f"can have at most {limit} characters"))
    if len(parts.get("message") or "") > MAX_NOTE:
        out.append(Cause.invalid("message", "", f"can have at most {MAX_NOTE} characters"))
