"""Which objects an export leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


@dataclass(frozen=True, slots=True)
class ExportFilters:
    """Namespaces by name, and labels by selectors (`{matchLabels, matchExpressions}`, as Kubernetes has
    them); an object that any of them matches is left out, and always one that a DaemonSet owns, since
    nodes bring their own. ValueError for a selector that cannot be read.
    """

    excluded_namespaces: frozenset[str] = frozenset()
    excluded_labels: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for selector in self.excluded_labels:
            for term in selector.get("matchExpressions") or ():
                if term.get("operator") not in _OPERATORS or not isinstance(term.get("key"), str):
                    raise ValueError(
                        f"excluded_labels: {dict(term)} needs a key and an operator of {', '.join(_OPERATORS)}"
                    )

    def excludes(self, obj: Mapping[str, Any]) -> bool:
        """True if an export leaves `obj` out."""
        metadata = obj["metadata"]
        if metadata.get("namespace") in self.excluded_namespaces:
            return True
        if any(owner.get("kind") == "DaemonSet" for owner in metadata.get("ownerReferences") or ()):
            return True
        labels = metadata.get("labels") or {}
        return any(_selects(selector, labels) for selector in self.excluded_labels)


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(term, labels) for term in selector.get("matchExpressions") or ())


def _holds(term: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = term["key"], term.get("values") or ()
    match term["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
