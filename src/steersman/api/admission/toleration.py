"""DefaultTolerationSeconds: pods stay five minutes on a node that is not ready or cannot be reached.

Source of the facts: kubernetes `plugin/pkg/admission/defaulttolerationseconds`, release 1.36.
"""

from __future__ import annotations

from typing import Final

from steersman.api.admission.edit import Edits, joined, spec_of, with_part
from steersman.api.admission.plugin import CREATE, UPDATE, Answer, Attempt, Plugin
from steersman.kernel.value import Frozen

SECONDS: Final = 300
NO_EXECUTE: Final = "NoExecute"
ADDED: Final = tuple(
    Frozen({"effect": NO_EXECUTE, "key": key, "operator": "Exists", "tolerationSeconds": SECONDS})
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)


class DefaultTolerationSeconds(Plugin):
    """Adds the two tolerations where a pod does not say itself how it takes such nodes."""

    name = "DefaultTolerationSeconds"
    kinds = (("", "Pod"),)
    operations = (CREATE, UPDATE)

    def __init__(self) -> None:
        self._edits = Edits()

    def mutate(self, attempt: Attempt) -> Answer:
        """See the class."""
        return with_part(attempt, "spec", self._edits(spec_of(attempt), None, _tolerant))


def _tolerant(spec: Frozen) -> Frozen:
    known = spec.get("tolerations") or ()
    said = {t.get("key") or "" for t in known if (t.get("effect") or NO_EXECUTE) == NO_EXECUTE}
    missing = [] if "" in said else [one for one in ADDED if one["key"] not in said]
    return Frozen({**spec, "tolerations": joined(known, *missing)}) if missing else spec
