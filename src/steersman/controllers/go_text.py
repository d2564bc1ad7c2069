"""API objects in messages, as Go's `%v` and `%+v` show them: clients compare whole messages.

Source: the generated `String` methods of k8s.io/apimachinery 0.36, pkg/apis/meta/v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.kernel.value import EMPTY


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A pointer to a LabelSelector."""
    if selector is None:
        return "nil"
    labels = "".join(f"{name}: {value}," for name, value in sorted((selector.get("matchLabels") or EMPTY).items()))
    needs = "".join(f"{_need(each)}," for each in selector.get("matchExpressions") or ())
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{needs}}},}}"
    )


def _need(need: Mapping[str, Any]) -> str:
    values = " ".join(need.get("values") or ())
    return f"LabelSelectorRequirement{{Key:{need['key']},Operator:{need['operator']},Values:[{values}],}}"
