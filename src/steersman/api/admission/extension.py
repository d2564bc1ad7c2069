"""Policies and webhooks in the chain. What they are made of, the expression language above all, is loaded when the
first of them is in the store: nobody else waits for it."""

from __future__ import annotations

from typing import ClassVar, Final

from steersman.api.admission.match import GROUP
from steersman.api.admission.plugin import CONNECT, CREATE, DELETE, UPDATE, Answer, Attempt, Plugin
from steersman.api.kinds import GK


class Later(Plugin):
    """A plugin for any kind and subresource that is made when there is first something for it to do."""

    kinds: ClassVar[tuple[GK, ...] | None] = None
    subresources: ClassVar[tuple[str, ...] | None] = None

    def __init__(self) -> None:
        self._made: Plugin | None = None

    def made(self) -> Plugin:
        """The plugin itself."""
        if self._made is None:
            self._made = self.make()
        return self._made

    def make(self) -> Plugin:
        """Loads it."""
        raise NotImplementedError


class MutatingPolicies(Later):
    """See `admission.mutating_policy`."""

    name: ClassVar[str] = "MutatingAdmissionPolicy"
    operations: ClassVar[tuple[str, ...]] = (CREATE, UPDATE, CONNECT)
    needs: ClassVar[tuple[GK, ...]] = ((GROUP, "MutatingAdmissionPolicyBinding"),)

    def make(self) -> Plugin:
        """Loads it."""
        from steersman.api.admission.mutating_policy import MutatingAdmissionPolicy

        return MutatingAdmissionPolicy()

    def mutate(self, attempt: Attempt) -> Answer:
        """Changes a write."""
        return self.made().mutate(attempt)


class MutatingWebhooks(Later):
    """See `admission.webhooks`."""

    name: ClassVar[str] = "MutatingAdmissionWebhook"
    operations: ClassVar[tuple[str, ...]] = (CREATE, UPDATE, DELETE, CONNECT)
    needs: ClassVar[tuple[GK, ...]] = ((GROUP, "MutatingWebhookConfiguration"),)

    def make(self) -> Plugin:
        """Loads it."""
        from steersman.api.admission.webhooks import MutatingAdmissionWebhook

        return MutatingAdmissionWebhook()

    def mutate(self, attempt: Attempt) -> Answer:
        """Changes a write."""
        return self.made().mutate(attempt)


class ValidatingPolicies(Later):
    """See `admission.validating_policy`."""

    name: ClassVar[str] = "ValidatingAdmissionPolicy"
    operations: ClassVar[tuple[str, ...]] = (CREATE, UPDATE, DELETE, CONNECT)
    needs: ClassVar[tuple[GK, ...]] = ((GROUP, "ValidatingAdmissionPolicyBinding"),)

    def make(self) -> Plugin:
        """Loads it."""
        from steersman.api.admission.validating_policy import ValidatingAdmissionPolicy

        return ValidatingAdmissionPolicy()

    def validate(self, attempt: Attempt) -> Answer:
        """Judges a write."""
        return self.made().validate(attempt)


class ValidatingWebhooks(Later):
    """See `admission.webhooks`."""

    name: ClassVar[str] = "ValidatingAdmissionWebhook"
    operations: ClassVar[tuple[str, ...]] = (CREATE, UPDATE, DELETE, CONNECT)
    needs: ClassVar[tuple[GK, ...]] = ((GROUP, "ValidatingWebhookConfiguration"),)

    def make(self) -> Plugin:
        """Loads it."""
        from steersman.api.admission.webhooks import ValidatingAdmissionWebhook

        return ValidatingAdmissionWebhook()

    def validate(self, attempt: Attempt) -> Answer:
        """Judges a write."""
        return self.made().validate(attempt)


EXTENSIONS: Final[tuple[Plugin, ...]] = (
    MutatingPolicies(),
    MutatingWebhooks(),
    ValidatingPolicies(),
    ValidatingWebhooks(),
)
"""All four, in kube-apiserver's order."""
