"""Admission webhooks: mutating ones, one after the other; validating ones, all together.

Source of the facts: `apiserver/pkg/admission/plugin/webhook` of Kubernetes 1.36, texts included.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import orjson

from steersman.api import errors
from steersman.api.access.authz import Rbac
from steersman.api.admission import expressions
from steersman.api.admission.about import from_version, in_version, request_json, user_of
from steersman.api.admission.expressions import Evaluation, Expression, Problem, Uses
from steersman.api.admission.hook import DEFAULT_TIMEOUT, Hook
from steersman.api.admission.match import GROUP, Matching
from steersman.api.admission.plugin import CONNECT, CREATE, DELETE, UPDATE, Answer, Ask, Attempt, Plugin, Verdict
from steersman.api.admission.service import place_of
from steersman.api.cel.environment import CONDITIONS_BUDGET
from steersman.api.kinds import GK, Kind
from steersman.api.patching.patch import json_patch
from steersman.kernel.object import Object
from steersman.kernel.value import freeze

MUTATING: Final[GK] = (GROUP, "MutatingWebhookConfiguration")
VALIDATING: Final[GK] = (GROUP, "ValidatingWebhookConfiguration")
API_VERSION: Final = "admission.k8s.io/v1"
MAX_WARNINGS: Final = 16
"""Warnings, and notes for the audit log, taken of one answer, and characters of one: clients drop what is beyond."""
MAX_WARNING: Final = 256
PATCH: Final = "patch.webhook.admission.k8s.io/"
MUTATION: Final = "mutation.webhook.admission.k8s.io/"
VALIDATION: Final = "validating.webhook.admission.k8s.io/"
WITHOUT_EFFECT: Final = ("None", "NoneOnDryRun")


class Webhook(NamedTuple):
    """One compiled webhook."""

    name: str
    matching: Matching | None
    fault: str
    conditions: tuple[Expression, ...]
    ignores: bool
    timeout: int
    client: Mapping[str, Any]
    effects: str
    again: bool
    """reinvocationPolicy: IfNeeded."""
    versions: tuple[str, ...]
    configuration: str = ""
    """The name of the object that has it."""


class Meant(NamedTuple):
    """A webhook that is to be called, and the kind as its rule names it."""

    webhook: Webhook
    kind: Kind


def _webhooks(objects: Iterator[Object]) -> list[Webhook]:
    """All webhooks of a kind of configuration, in the order of the configurations' names."""
    return [_webhook(given, obj.key.name) for obj in objects for given in (obj.value.get("webhooks") or ())]


def _webhook(given: Mapping[str, Any], configuration: str) -> Webhook:
    matching, fault = None, ""
    try:
        matching = Matching(given, given.get("rules") or ())
    except errors.ApiError as error:
        fault = error.message
    return Webhook(
        given["name"], matching, fault, expressions.conditions(given.get("matchConditions") or (), Uses()),
        given.get("failurePolicy") == "Ignore", given.get("timeoutSeconds") or DEFAULT_TIMEOUT, given["clientConfig"],
        given.get("sideEffects") or "", given.get("reinvocationPolicy") == "IfNeeded",
        tuple(given.get("admissionReviewVersions") or ()), configuration,
    )  # fmt: skip


class Webhooks(Plugin):
    """What both kinds share: which webhooks are meant, and the question they are asked."""

    kinds: ClassVar[tuple[GK, ...] | None] = None
    operations: ClassVar[tuple[str, ...]] = (CREATE, UPDATE, DELETE, CONNECT)
    subresources: ClassVar[tuple[str, ...] | None] = None

    def __init__(self) -> None:
        self._rbac = Rbac()

    def meant(self, webhook: Webhook, attempt: Attempt) -> Meant | None:
        """The webhook, if it is to be called. Raises `ApiError` where that cannot be told."""
        if webhook.fault or webhook.matching is None:
            raise errors.internal(webhook.fault)
        kind = webhook.matching.matches(attempt)
        if kind is None:
            return None
        if webhook.conditions and not self._holds(webhook, kind, attempt):
            return None
        if attempt.request.options.get("dry_run") and webhook.effects not in WITHOUT_EFFECT:
            told = f"admission webhook {errors.quote(webhook.name)} does not support dry run"
            raise errors.bad_request(told)
        return Meant(webhook, kind)

    def _holds(self, webhook: Webhook, kind: Kind, attempt: Attempt) -> bool:
        judge = expressions.judge_of(self._rbac, attempt.store, user_of(attempt.request))
        evaluation = Evaluation(attempt, kind, CONDITIONS_BUDGET, judge=judge, namespace=False)
        try:
            return expressions.hold(webhook.conditions, evaluation)
        except Problem as problem:
            if webhook.ignores:
                return False
            raise attempt.forbidden(str(problem)) from None

    @staticmethod
    def hook(meant: Meant, attempt: Attempt) -> Hook:
        """The question a webhook is asked."""
        webhook, kind = meant
        place = place_of(attempt.store, webhook.client)
        request = request_json(attempt, kind)
        old = None if attempt.old is None else attempt.old.value
        request["object"] = in_version(attempt.body, kind, attempt.kind)
        request["oldObject"] = in_version(old, kind, attempt.kind)
        review = {"kind": "AdmissionReview", "apiVersion": API_VERSION, "request": request}
        fault = place.fault
        if API_VERSION.rpartition("/")[2] not in webhook.versions:
            fault = "webhook does not accept known AdmissionReview versions (v1)"
        ca_bundle = webhook.client.get("caBundle") or ""
        return Hook(webhook.name, place.url, place.host, ca_bundle, webhook.timeout, review, fault, place.addresses)


class MutatingAdmissionWebhook(Webhooks):
    """Asks the mutating webhooks, one after the other."""

    name: ClassVar[str] = "MutatingAdmissionWebhook"
    needs: ClassVar[tuple[GK, ...]] = (MUTATING,)

    def mutate(self, attempt: Attempt) -> Answer:
        """What is left of a write. Raises `ApiError`."""
        webhooks: list[Webhook] = attempt.store.derived(MUTATING, _webhooks) or []
        if attempt.again:
            webhooks = [webhook for webhook in webhooks if webhook.again]
        return self._from(webhooks, 0, attempt, attempt.body, ())

    def _from(
        self, webhooks: Sequence[Webhook], start: int, attempt: Attempt, before: Any, warnings: tuple[str, ...]
    ) -> Answer:
        """Asks the webhooks from an index on; `before` is the body that the first was asked about."""
        for index in range(start, len(webhooks)):
            meant = self.meant(webhooks[index], attempt)
            if meant is None:
                continue

            def resume(answers: Any, meant: Meant = meant, index: int = index) -> Answer:
                said = _said(meant.webhook, answers[0], attempt)
                place = f"round_{int(attempt.again)}_index_{index}"
                body = attempt.body if said is None else _changed(meant, said, attempt, place)
                if said is None:
                    attempt.note(f"failed-open.{MUTATION}{place}", meant.webhook.name)
                elif attempt.audited:
                    about = {**_about(meant.webhook), "mutated": body is not attempt.body}
                    attempt.note(f"{MUTATION}{place}", orjson.dumps(about).decode())
                    _annotate(meant.webhook, said, attempt)
                told = warnings if said is None else (*warnings, *_warnings(said))
                return self._from(webhooks, index + 1, attempt._replace(body=body), before, told)

            return Ask("webhook", (self.hook(meant, attempt),), resume)
        changed = attempt.body is not before
        if not changed and not warnings:
            return None
        return Verdict(attempt.body if changed else None, warnings, changed and not attempt.again)


class ValidatingAdmissionWebhook(Webhooks):
    """Asks the validating webhooks, all at once."""

    name: ClassVar[str] = "ValidatingAdmissionWebhook"
    needs: ClassVar[tuple[GK, ...]] = (VALIDATING,)

    def validate(self, attempt: Attempt) -> Answer:
        """Refuses what one of them refuses. Raises `ApiError`."""
        webhooks: list[Webhook] = attempt.store.derived(VALIDATING, _webhooks) or []
        meant = [found for webhook in webhooks if (found := self.meant(webhook, attempt)) is not None]
        if not meant:
            return None

        def resume(answers: Any) -> Answer:
            warnings: list[str] = []
            for index, (one, answer) in enumerate(zip(meant, answers, strict=True)):
                said = _said(one.webhook, answer, attempt)
                if said is None:
                    attempt.note(f"failed-open.{VALIDATION}round_0_index_{index}", one.webhook.name)
                    continue
                warnings += _warnings(said)
                _annotate(one.webhook, said, attempt)
            return Verdict(warnings=tuple(warnings)) if warnings else None

        return Ask("webhook", tuple([self.hook(one, attempt) for one in meant]), resume)


# -- answers ---------------------------------------------------------------------------------------------------


def _failed(webhook: Webhook, why: str, timed_out: bool = False) -> None:
    """A call that came to nothing: overlooked, or the end of the write."""
    if webhook.ignores:
        return
    told = f"failed calling webhook {errors.quote(webhook.name)}: {why}"
    if timed_out:
        raise errors.ApiError(504, "Timeout", f"Timeout: {told}", errors.Details())
    raise errors.internal(told)


def _said(webhook: Webhook, answer: Any, attempt: Attempt) -> Mapping[str, Any] | None:
    """The `response` of an answer that allows; None where a failure is overlooked. Raises `ApiError`."""
    if isinstance(answer, dict) and "unanswered" in answer:
        _failed(webhook, f"failed to call webhook: {answer['unanswered']}", bool(answer.get("timedOut")))
        return None
    response = answer.get("response") if isinstance(answer, dict) else None
    if not isinstance(response, dict):
        _failed(webhook, "webhook response was absent")
        return None
    expected = f"{API_VERSION}, Kind=AdmissionReview"
    given = f"{answer.get('apiVersion')}, Kind={answer.get('kind')}"
    if given != expected:
        _failed(webhook, f"expected webhook response of {expected}, got {given}")
        return None
    if response.get("allowed") is True:
        return response
    raise _rejection(webhook, response.get("status"))


def _rejection(webhook: Webhook, status: Any) -> errors.ApiError:
    """What a client is told when a webhook says no: its status, with a code that is a failure."""
    given = status if isinstance(status, dict) else {}
    message, reason, code = given.get("message"), given.get("reason"), given.get("code")
    denied = f"admission webhook {errors.quote(webhook.name)} denied the request"
    if isinstance(message, str) and message:
        text = f"{denied}: {message[:MAX_MESSAGE]}"
    elif isinstance(reason, str) and reason:
        text = f"{denied}: {reason[:MAX_MESSAGE]}"
    else:
        text = f"{denied} without explanation"
    number = code if type(code) is int and 400 <= code < 600 else 403 if not code else 400
    return errors.ApiError(number, reason if isinstance(reason, str) else "", text, errors.Details())


MAX_PATCH: Final = 256 << 10
"""Characters of a patch (in base64) that the audit log is told: a quarter of its longest line."""
MAX_MESSAGE: Final = 4096
"""Characters of a webhook's own text in a refusal."""


def _annotate(webhook: Webhook, response: Mapping[str, Any], attempt: Attempt) -> None:
    """What a webhook wants the audit log to be told."""
    given = response.get("auditAnnotations")
    for name, value in list(given.items())[:MAX_WARNINGS] if isinstance(given, dict) else ():
        if isinstance(value, str):
            attempt.note(f"{webhook.name}/{name[:MAX_WARNING]}", value[:MAX_MESSAGE])


def _warnings(response: Mapping[str, Any]) -> tuple[str, ...]:
    given = response.get("warnings")
    if not isinstance(given, list):
        return ()
    return tuple([text[:MAX_WARNING] for text in given[:MAX_WARNINGS] if isinstance(text, str) and text])


def _about(webhook: Webhook) -> dict[str, Any]:
    """How annotations of the audit log name a webhook."""
    return {"configuration": webhook.configuration, "webhook": webhook.name}


def _changed(meant: Meant, response: Mapping[str, Any], attempt: Attempt, place: str) -> Any:
    """The body with the patch of an answer applied; `place` is that of the call. Raises `ApiError`."""
    webhook, matched = meant
    encoded = response.get("patch")
    if not encoded:
        return attempt.body
    try:
        if response.get("patchType") != "JSONPatch":
            raise ValueError("webhook returned response.patch but not response.patchType of JSONPatch")
        operations = orjson.loads(base64.b64decode(encoded, validate=True))
        if attempt.body is None:
            raise ValueError("a DELETE has no object to patch")
        if operations == []:
            return attempt.body
        seen = attempt.body
        if matched.alias is not None:
            seen = in_version(seen, matched, attempt.kind) or seen
        changed = json_patch(seen, operations)
        for field in ("apiVersion", "kind"):
            if not isinstance(changed, dict) or changed.get(field) != seen.get(field):
                raise ValueError(f"the patch changes {field}")
        if attempt.audited and len(encoded) <= MAX_PATCH:
            told = {**_about(webhook), "patch": operations, "patchType": "JSONPatch"}
            attempt.note(f"{PATCH}{place}", orjson.dumps(told).decode())
        return attempt.body if changed == seen else freeze(from_version(changed, matched))
    except (ValueError, TypeError, binascii.Error, errors.ApiError) as problem:
        _failed(webhook, str(problem))
        return attempt.body
