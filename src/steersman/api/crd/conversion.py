"""Conversion webhooks: what the webhook of a definition is asked, and what its answer makes of an object.

Nothing here calls anybody. Whoever needs an object in a version it is not in looks it up among the answers its kind
has (`Kind.converted`), and raises `Unconverted` where there is none yet. `asking` turns that into a Call and works the
request out again with the longer list of answers, which is sound because nothing happens before the outcome; readers
(`serve.converting`) ask for many objects at once.

Source of the facts: apiextensions-apiserver 0.36, `pkg/apiserver/conversion`, texts included. As there, an object is
completed with the defaults of its own version before it is converted, and pruned to the other one after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson
from xxhash import xxh3_128_intdigest

from steersman.api import errors, fields, managed
from steersman.api.admission.hook import MAX_TIMEOUT, Hook
from steersman.api.admission.service import place_of
from steersman.api.crd.pruning import prune
from steersman.api.kinds import Kind
from steersman.api.rules import metadata_rules
from steersman.kernel.effect import Call, Outcome
from steersman.kernel.object import Object, Section
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY, Frozen, ValueRefused, freeze

GROUP: Final = "apiextensions.k8s.io"
REVIEWS: Final = ("v1", "v1beta1")
"""Versions of a ConversionReview; which of them is sent says the definition's conversionReviewVersions."""
Answers = Mapping[int, "Object | errors.ApiError"]
"""By `place`: what objects are in other versions, or why nobody knows."""


class Unconverted(Exception):
    """An object is needed in the version of `kind`, and its webhook has not been asked."""

    def __init__(self, kind: Kind, obj: Object) -> None:
        super().__init__(f"{obj.key} in {kind.api_version}")
        self.kind = kind
        self.obj = obj


def place(kind: Kind, obj: Object) -> int:
    """The identity of a conversion: all that the webhook is shown of the object, who it is, and the version wanted."""
    webhook = b"" if kind.origin is None else orjson.dumps(kind.origin.webhook, option=orjson.OPT_SORT_KEYS)
    return xxh3_128_intdigest(b"\0".join((kind.api_version.encode(), webhook, obj.at(0).to_json())))


def converted(answers: Answers, kind: Kind, obj: Object) -> Object:
    """An object, complete in its own version, in the version of `kind`. Raises `Unconverted`, and the `ApiError` that
    was the answer."""
    found = answers.get(place(kind, obj))
    if found is None:
        raise Unconverted(kind, obj)
    if isinstance(found, errors.ApiError):
        raise found
    return found if found.rv == obj.rv else found.at(obj.rv)


def across(kind: Kind, old: Object, new: Object) -> managed.Across | None:
    """What a change of an object in the version of `kind` is in other versions; None for a kind whose versions have
    the same fields. Calling it raises `Unconverted`."""
    if kind.converted is None or kind.origin is None:
        return None
    siblings = kind.origin.siblings
    known: dict[str, fields.Change | None] = {}

    def change_in(api_version: str) -> fields.Change | None:
        if api_version not in known:
            other = siblings.get(api_version.rpartition("/")[2])
            if other is None:
                known[api_version] = None
            else:
                known[api_version] = managed.changes(other, moved(kind, other, old), moved(kind, other, new))
        return known[api_version]

    return change_in


def moved(kind: Kind, other: Kind, obj: Object) -> Object:
    """An object in the version of `kind`, which has the answers, or one complete in another, in that of `other`."""
    return obj if obj.api_version == other.api_version else converted(kind.converted or {}, other, obj)


def asking(store: Store, kind: Kind, act: Callable[[Kind], Outcome]) -> Outcome:
    """The outcome of `act` on a kind that converts by webhook: as many Calls as it takes."""
    return _go_on(store, kind, act, {}, ())


Said = tuple[tuple[Any, Any], ...]
"""Questions that `act` asked itself, with their answers."""


def _go_on(store: Store, kind: Kind, act: Callable[[Kind], Outcome], answers: Answers, said: Said) -> Outcome:
    try:
        outcome = act(replace(kind, converted=answers))
        for question, answer in said:
            if not isinstance(outcome, Call) or outcome.question != question:
                break  # an answer in between has changed what it asks
            outcome = outcome.resume(answer)
    except Unconverted as missing:
        wanted, obj = missing.kind, missing.obj

        def told(given: Any) -> Outcome:
            found = read(wanted, (obj,), given[0])
            return _go_on(store, kind, act, {**answers, place(wanted, obj): found[0]}, said)

        return Call("convert", (question_of(store, wanted, (obj,)),), told)
    if isinstance(outcome, Call):
        asked = outcome.question
        return outcome._replace(
            resume=lambda answer: _go_on(store, kind, act, answers, (*said, (asked, answer))),
        )
    return outcome


def question_of(store: Store, kind: Kind, objs: Sequence[Object]) -> Hook:
    """What the webhook is asked, to have objects in the version of `kind`."""
    assert kind.origin is not None
    webhook = kind.origin.webhook or EMPTY
    client = webhook.get("clientConfig") or EMPTY
    where = place_of(store, client)
    wanted = next((v for v in webhook.get("conversionReviewVersions") or () if v in REVIEWS), "")
    fault = where.fault if wanted else "no supported conversion review versions"
    request = {
        "desiredAPIVersion": kind.api_version,
        "objects": [orjson.loads(obj.at(0).to_json()) for obj in objs],
    }
    review = {"kind": "ConversionReview", "apiVersion": f"{GROUP}/{wanted}", "request": request}
    name = f"conversion_webhook_for_{kind.origin.crd}"
    ca_bundle = client.get("caBundle") or ""
    return Hook(name, where.url, where.host, ca_bundle, MAX_TIMEOUT, review, fault, where.addresses)


def read(kind: Kind, objs: Sequence[Object], answer: Mapping[str, Any]) -> list[Object | errors.ApiError]:
    """The objects of an answer, or what is wrong with it, in the order of the question."""
    told = f"conversion webhook for {objs[0].api_version}, Kind={kind.kind}"
    fault = _fault(answer)
    if fault:
        return [failed(f"{told} failed: {fault}") for _ in objs]
    found = answer["response"].get("convertedObjects") or []
    if not isinstance(found, list) or len(found) != len(objs):
        count = len(found) if isinstance(found, list) else 0
        return [failed(f"{told} returned {count} objects, expected {len(objs)}") for _ in objs]
    return [_taken(told, kind, obj, given) for obj, given in zip(objs, found, strict=True)]


def failed(text: str) -> errors.ApiError:
    """The refusal of what needed a conversion that failed; Kubernetes gives no reason with it."""
    return errors.ApiError(500, "", text)


def _fault(answer: Mapping[str, Any]) -> str:
    """What is wrong with an answer as a whole; "" for a success."""
    if "unanswered" in answer:
        return str(answer["unanswered"])
    response = answer.get("response")
    version = str(answer.get("apiVersion") or "")
    if version != f"{GROUP}/v1beta1" and (version, answer.get("kind")) != (f"{GROUP}/v1", "ConversionReview"):
        got = f"{version}, Kind={answer.get('kind') or ''}"
        return f"expected webhook response of {GROUP}/v1, Kind=ConversionReview, got {got}"
    if not isinstance(response, Mapping):
        return "no response provided"
    result = response.get("result")
    result = result if isinstance(result, Mapping) else EMPTY
    if result.get("status") == "Success":
        return ""
    status = result.get("status") or ""
    return str(result.get("message") or f"response.result.status was '{status}', not 'Success'")


def _taken(told: str, kind: Kind, obj: Object, given: Any) -> Object | errors.ApiError:
    """One converted object, as far as the webhook has a say in it: its identity and metadata stay, but for labels and
    annotations."""
    if not isinstance(given, dict):
        return failed(f"{told} returned invalid object: it is no object")
    got = given.get("apiVersion") or ""
    if got != kind.api_version:
        detail = f"invalid groupVersion (expected {kind.api_version}, received {got})"
        return failed(f"{told} returned invalid object at index 0: {detail}")
    if given.get("kind") != kind.kind:
        detail = f"invalid kind (expected {kind.kind}, received {given.get('kind') or ''})"
        return failed(f"{told} returned invalid object at index 0: {detail}")
    meta = given.get("metadata")
    said = meta if isinstance(meta, dict) else EMPTY
    for field, name in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        was, now = obj.meta.value.get(field) or "", said.get(field) or ""
        if was != now:
            return failed(f"{told} returned invalid object: must have the same {name}: {was} != {now}")
    if not isinstance(meta, dict):
        return failed(f"{told} returned invalid metadata: missing metadata in converted object")
    try:
        kept = _meta(kind, obj, meta)
        body = {part: freeze(value) for part, value in given.items() if part not in ("apiVersion", "kind", "metadata")}
    except (ValueRefused, ValueError) as error:
        return failed(f"{told} returned invalid metadata: {error}")
    return _object(kind, obj, kept, body)


def _meta(kind: Kind, obj: Object, given: Mapping[str, Any]) -> Section:
    """The metadata of the original with the labels and annotations of the answer. Raises `ValueError`."""
    meta = dict(obj.meta.value)
    for field in ("labels", "annotations"):
        value = given.get(field)
        if value is None:
            meta.pop(field, None)
            continue
        if not isinstance(value, dict):
            raise ValueError(f"invalid metadata.{field} in converted object: it is no object")
        for name, text in value.items():
            if not isinstance(text, str):
                raise ValueError(f"metadata.{field}[{name}] must be a string in converted object")
        if value != meta.get(field):
            causes = metadata_rules.metadata(kind, {**obj.meta.value, field: value})
            if causes:
                raise ValueError(", ".join([str(cause) for cause in causes]))
        meta[field] = freeze(value)
    return obj.meta if meta == obj.meta.value else Section(Frozen(meta))


def _object(kind: Kind, obj: Object, meta: Section, body: Mapping[str, Any]) -> Object:
    """The parts of an answer as an object of `kind`, without what its schema does not declare."""
    parts = kind.schema.fields
    kept = {
        part: prune(parts[part], value) if part in parts else value
        for part, value in body.items()
        if (part in parts or kind.schema.preserve_unknown) and value is not None
    }
    spec, status = kept.pop("spec", None), kept.pop("status", None)
    return Object(
        obj.key,
        kind.api_version,
        obj.rv,
        meta,
        None if spec is None else Section(spec),
        Section(Frozen(kept)) if kept else None,
        None if status is None else Section(status),
        obj.managers,
        obj.node,
    )
