"""DefaultIngressClass: an Ingress that names no class gets the default one, if there is one.

Source of the facts: kubernetes `plugin/pkg/admission/network/defaultingressclass`, release 1.36.
"""

from __future__ import annotations

from typing import Final

from steersman.api.admission.edit import newest, notes_of, spec_of, with_part
from steersman.api.admission.plugin import Answer, Attempt, Plugin
from steersman.kernel.value import EMPTY, Frozen

CLASS: Final = ("networking.k8s.io", "IngressClass")
OLD_ANNOTATION: Final = "kubernetes.io/ingress.class"
DEFAULT_MARK: Final = "ingressclass.kubernetes.io/is-default-class"


class DefaultIngressClass(Plugin):
    """See the module's text."""

    name = "DefaultIngressClass"
    kinds = (("networking.k8s.io", "Ingress"),)
    needs = (CLASS,)

    def mutate(self, attempt: Attempt) -> Answer:
        """See the module's text."""
        spec = spec_of(attempt)
        if spec.get("ingressClassName") is not None or OLD_ANNOTATION in notes_of(attempt):
            return None
        marked = [
            found
            for found in attempt.store.list(CLASS)
            if (found.meta.value.get("annotations") or EMPTY).get(DEFAULT_MARK) == "true"
        ]
        chosen = newest(marked)
        if chosen is None:
            return None
        return with_part(attempt, "spec", Frozen({**spec, "ingressClassName": chosen.key.name}))
