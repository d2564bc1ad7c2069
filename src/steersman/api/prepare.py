"""What the server adds to an object when it is created, from its name and uid. Pure.

It comes after admission and before validation, and nobody manages it, as in Kubernetes. Source of the facts:
Kubernetes 1.36, pkg/registry/batch/job/strategy.go (generateSelector),
pkg/registry/core/namespace/strategy.go and pkg/apis/batch/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from steersman.kernel.value import EMPTY, Frozen, FrozenList

NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")

CONTENT: Final = "kubernetes"
"""The finalizer of a Namespace that stands for what is in it."""


def _job(meta: dict[str, Any], spec: Frozen) -> Frozen:
    """A Job that does not choose its pods itself gets a selector of its uid, and its pods the labels for it; a Job
    without labels takes those of its pods."""
    template = spec.get("template") or EMPTY
    pod_meta = template.get("metadata") or EMPTY
    labels = pod_meta.get("labels") or EMPTY
    taken = meta.get("labels") is pod_meta.get("labels")  # from the template (`born`), which then shares its own
    if not spec.get("manualSelector"):
        added = {**dict.fromkeys(NAME_LABELS, meta["name"]), **dict.fromkeys(UID_LABELS, meta["uid"])}
        labels = Frozen({**labels, **{name: value for name, value in added.items() if name not in labels}})
        chosen = (spec.get("selector") or EMPTY).get("matchLabels") or EMPTY
        if UID_LABELS[1] not in chosen:
            chosen = Frozen({**chosen, UID_LABELS[1]: meta["uid"]})
        selector = Frozen({**(spec.get("selector") or EMPTY), "matchLabels": chosen})
        template = Frozen({**template, "metadata": Frozen({**pod_meta, "labels": labels})})
        spec = Frozen({**spec, "selector": selector, "template": template})
    if labels and (taken or not meta.get("labels")):
        meta["labels"] = labels
    return spec


def _namespace(_meta: dict[str, Any], spec: Frozen) -> Frozen:
    """A Namespace stays until the controller of namespaces has emptied it, whoever else has a say in it."""
    finalizers = spec.get("finalizers") or ()
    return spec if CONTENT in finalizers else Frozen({**spec, "finalizers": FrozenList([*finalizers, CONTENT])})


PREPARED: Final[Mapping[tuple[str, str], Callable[[dict[str, Any], Frozen], Frozen]]] = {
    ("", "Namespace"): _namespace,
    ("batch", "Job"): _job,
}
"""By kind: (metadata, spec) of a new object → the spec as it is stored; the metadata may be changed in place."""
