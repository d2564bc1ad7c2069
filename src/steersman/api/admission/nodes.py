"""What admission does about nodes: new ones are tainted until they are ready, and pods learn where their node is.

TaintNodesByCondition and PodTopologyLabels. Source of the facts: kubernetes `plugin/pkg/admission/nodetaint` and
`plugin/pkg/admission/podtopologylabels`, release 1.36.
"""

from __future__ import annotations

from typing import Final

from steersman.api.admission.edit import joined, spec_of, with_part
from steersman.api.admission.plugin import Answer, Attempt, Plugin
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY, Frozen

NOT_READY: Final = Frozen({"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready"})
TOPOLOGY: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


class TaintNodesByCondition(Plugin):
    """A new node is not ready: whoever finds it so takes the taint away."""

    name = "TaintNodesByCondition"
    kinds = (("", "Node"),)

    def mutate(self, attempt: Attempt) -> Answer:
        """See the class."""
        spec = spec_of(attempt)
        taints = spec.get("taints") or ()
        if any((t.get("key"), t.get("effect")) == (NOT_READY["key"], NOT_READY["effect"]) for t in taints):
            return None
        return with_part(attempt, "spec", Frozen({**spec, "taints": joined(taints, NOT_READY)}))


class PodTopologyLabels(Plugin):
    """A binding brings the zone and region of its node to the pod, as labels."""

    name = "PodTopologyLabels"
    kinds = (("", "Pod"),)
    subresources = ("binding",)

    def mutate(self, attempt: Attempt) -> Answer:
        """See the class."""
        assert attempt.body is not None
        target = attempt.body.get("target") or EMPTY
        if target.get("kind") != "Node":
            return None
        node = attempt.store.get(Key("", "Node", "", str(target.get("name") or "")))
        known = (node.meta.value.get("labels") or EMPTY) if node is not None else EMPTY
        copied = {name: known[name] for name in TOPOLOGY if name in known}
        if not copied:
            return None
        meta = attempt.body.get("metadata") or EMPTY
        labels = Frozen({**(meta.get("labels") or EMPTY), **copied})
        return with_part(attempt, "metadata", Frozen({**meta, "labels": labels}))
