"""What an update may not change of an object: of its metadata, and of its parts.

The rules of the kinds are in `validate`; here they meet both versions. Source of the facts: apimachinery
`pkg/api/validation/objectmeta.go`, apiserver `pkg/registry/rest/update.go`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api import validate
from steersman.api.kinds import Kind
from steersman.api.rules.metadata_rules import FIXED, JUDGED_ONCE, UNTIMED
from steersman.kernel.object import Object, Section
from steersman.kernel.value import EMPTY, Frozen


def meta_causes(
    kind: Kind, old: Object, given: Mapping[str, Any], meta: Mapping[str, Any], new: Object | None = None
) -> list[Any]:
    """What of the metadata `given` may not change so, and what does not go with the parts of `new`; `meta` is what
    comes of it."""
    fixed = FIXED if "deletionTimestamp" not in meta else UNTIMED  # while it is deleted, that is not heard
    claimed = {**meta, **{field: given[field] for field in fixed if given.get(field)}}
    causes: list[Any] = validate.metadata_change(kind, old.meta.value, claimed)
    once = kind.gk in JUDGED_ONCE or kind.group == "admissionregistration.k8s.io"
    between = validate.together(kind, claimed, new) if new is not None and kind.gk in validate.TOGETHER else []
    return causes + between if once else causes + between + causes  # the rules of the kind say it again


def part_causes(
    kind: Kind, old: Object, spec: Section | None, node_name: str | None, rest: Section | None
) -> list[Any]:
    """What of the parts of an object may not change so."""
    causes: list[Any] = []
    if spec is not old.spec or node_name != old.node:
        after = None if spec is None else spec.value
        if node_name is not None and after is not None:
            after = Frozen({**after, "nodeName": node_name})
        causes += validate.change(kind, "spec", old.spec_value, after)
    if rest is not old.rest:
        a = EMPTY if old.rest is None else old.rest.value
        b = EMPTY if rest is None else rest.value
        for part in sorted(a.keys() | b.keys()):
            if a.get(part) != b.get(part):
                causes += validate.change(kind, part, a.get(part), b.get(part))
        causes += validate.frozen_data(kind, a, b)
    return causes
