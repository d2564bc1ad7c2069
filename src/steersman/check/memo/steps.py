"""A step of a reconcile as JSON: its next call, or its result. What has no such form is not kept.

Reading is strict: a file may hold anything. Everything read is frozen.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from steersman.api.begin import Api
from steersman.kernel.effect import Effect, ListQuery, Request
from steersman.kernel.object import Key
from steersman.kernel.reexec import Recalled, Result
from steersman.kernel.system import Learned
from steersman.kernel.value import ValueRefused, freeze

FIELDS: Final = " fields "
"""Between the two selectors in the text of a query (`api.begin.Api.query`)."""


class Unreadable(ValueError):
    """It is no step."""


def written(step: Recalled, api: Api) -> bytes | None:
    """The step as JSON; None when it has no such form."""
    try:
        parts = _parts(step)
        text = orjson.dumps(parts)
        again = read(text, api)
    except (TypeError, ValueError, ValueRefused, LookupError, AttributeError):
        return None
    return text if _equal(step, again) else None


def read(text: bytes, api: Api) -> Recalled:
    """The step. Raises `Unreadable`."""
    try:
        kind, *parts = orjson.loads(text)
        if kind == "learned":
            ranks, delay = parts
            return Recalled(None, -1, None, Learned(ranks=_is(ranks, bool), delay=_is(delay, int)))
        if kind == "result":
            return Recalled(None, -1, _result(parts), None)
        if kind == "call":
            op, fresh, version, what = parts
            made = Effect(_is(op, str), _what(op, what, api), _is(fresh, bool))
            return Recalled(made, _is(version, int), None, None)
    except Unreadable:
        raise
    except Exception as error:  # whatever a hostile text leads to
        raise Unreadable(f"{type(error).__name__}: {error}") from None
    raise Unreadable(f"no step: {kind!r}")


def _parts(step: Recalled) -> list[Any]:
    if step.learned is not None:
        return ["learned", step.learned.ranks, step.learned.delay]
    if step.result is not None:
        return ["result", *step.result[:-1], list(step.result.names)]
    effect = step.effect
    if effect is None:
        raise Unreadable("neither a call nor a result")
    what: Any = effect.what
    if effect.op == "write":
        if what.actor or what.now:
            raise Unreadable("a write that is signed already")
        what = [what.verb, list(what.key), freeze(what.body), what.subresource, what.manager, freeze(what.options)]
    elif effect.op == "get":
        what = list(what)
    elif effect.op == "list":
        what = [*what.gk, what.namespace, what.by, what.value, what.text]
    return ["call", effect.op, effect.fresh, step.version, what]


def _result(parts: list[Any]) -> Result:
    memory, after, at, again, error, api_error, where, names = parts
    return Result(
        None if memory is None else freeze(_is(memory, dict)),
        None if after is None else _is(after, int),
        None if at is None else _is(at, int),
        _is(again, bool),
        None if error is None else _is(error, str),
        _is(api_error, bool),
        _is(where, str),
        tuple([_is(name, str) for name in names]),
    )


def _what(op: str, what: Any, api: Api) -> Any:
    if op == "get":
        return _key(what)
    if op == "list":
        return _query(what, api)
    if op == "write":
        verb, key, body, subresource, manager, options = what
        texts = [_is(text, str) for text in (verb, subresource, manager)]
        return Request(
            texts[0], _key(key), freeze(body), texts[1], manager=texts[2], options=freeze(_is(options, dict))
        )
    if op in ("now", "stamp") and what is None:
        return None
    if op == "after":
        at, delay = what
        return (_is(at, int), _is(delay, int))
    if op == "random":
        manager, size = what
        return (_is(manager, str), _is(size, int))
    if op == "external":
        system, request = what
        return (_is(system, str), freeze(request))
    raise Unreadable(f"no call: {op!r}")


def _query(what: Any, api: Api) -> ListQuery:
    group, kind, namespace, by, value, text = what
    texts = [_is(part, str) for part in (group, kind, by, value, text)]
    namespace = None if namespace is None else _is(namespace, str)
    if not text:
        return ListQuery((group, kind), namespace, texts[2], texts[3])
    labels, _, fields = text.partition(FIELDS)
    made = api.query(api.kinds.get(group, kind), namespace, labels, fields)
    return made._replace(by=by, value=value)


def _key(what: Any) -> Key:
    group, kind, namespace, name = [_is(part, str) for part in what]
    return Key(group, kind, namespace, name)


def _is(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise Unreadable(f"{kind.__name__} expected, not {value!r:.60}")
    return value


def _equal(one: Recalled, other: Recalled) -> bool:
    """Whether what was read is what was written."""
    if one.learned is not None:
        return True
    if one.result is not None or one.effect is None or other.effect is None:
        return one.result == other.result
    a, b = one.effect, other.effect
    if a.op == "list":
        return (a[::2], a.what[:5]) == (b[::2], b.what[:5])
    return type(a.what) is type(b.what) and a == b and one.version == other.version
