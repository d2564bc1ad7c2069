"""Which nodes a pod's `nodeSelector` and `affinity.nodeAffinity` admit, and which they prefer.

Facts: component-helpers `scheduling/corev1/nodeaffinity` and kube-scheduler's plug-in NodeAffinity (PreFilter).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steersman.api.select import NodeSelector

NAME_FIELD = "metadata.name"

CONFLICT = "pod affinity terms conflict"
"""kube-scheduler's words when no node name can satisfy the terms."""


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """Compiled once a pod class.

    pinned: the only node names that can match, or None if names are not all that narrow; empty means a conflict.
    keys: the labels that any term reads, sorted: nodes that agree in these get the same verdict.
    reads_name: whether a verdict also depends on the node's name.
    """

    selector: tuple[tuple[str, str], ...]
    required: NodeSelector | None
    preferred: tuple[tuple[int, NodeSelector], ...]
    pinned: frozenset[str] | None
    keys: tuple[str, ...]
    reads_name: bool

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> "NodeAffinity":
        selector = spec.get("nodeSelector") or {}
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        terms = () if required is None else tuple(required.get("nodeSelectorTerms") or ())
        weighted = [
            (each.get("weight") or 0, each.get("preference") or {})
            for each in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        ]
        all_terms = (*terms, *(term for _, term in weighted))
        expressions = [each for term in all_terms for each in term.get("matchExpressions") or ()]
        return cls(
            selector=tuple(sorted(selector.items())),
            # Lenient: the API server lets no unreadable term in, and kube-scheduler has it match nothing.
            required=None if required is None else NodeSelector.compile(required, lenient=True),
            preferred=tuple(
                (weight, NodeSelector.compile({"nodeSelectorTerms": [term]}, lenient=True))
                for weight, term in weighted
                if weight
            ),
            pinned=_pinned(terms),
            keys=tuple(sorted({*selector, *(each.get("key", "") for each in expressions)})),
            reads_name=any(term.get("matchFields") for term in all_terms),
        )

    def admits(self, labels: Mapping[str, str], name: str) -> bool:
        """Both the node selector (all of its labels) and the required terms (any of them, if given) match."""
        if any(labels.get(key) != value for key, value in self.selector):
            return False
        return self.required is None or self.required.matches(labels, name)

    def weight(self, labels: Mapping[str, str], name: str) -> int:
        """The sum of the weights of the preferred terms that match."""
        return sum(weight for weight, term in self.preferred if term.matches(labels, name))


def _pinned(terms: tuple[Mapping[str, Any], ...]) -> frozenset[str] | None:
    """The node names that terms allow, if every term names some: what kube-scheduler's PreFilter works out."""
    names: set[str] = set()
    for term in terms:
        allowed: set[str] | None = None
        for each in term.get("matchFields") or ():
            if each.get("key") == NAME_FIELD and each.get("operator") == "In":
                values = set(each.get("values") or ())
                allowed = values if allowed is None else allowed & values
        if allowed is None:
            return None
        names |= allowed
    return frozenset(names) if terms else None
