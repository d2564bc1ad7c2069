"""POST of pods/NAME/eviction."""

from __future__ import annotations

from typing import Any, Final

from steersman.api import errors, eviction
from steersman.api.errors import ApiError
from steersman.kernel.effect import Effect
from steersman.kernel.object import Key
from steersman.serve.backend import Backend
from steersman.serve.message import Query
from steersman.serve.options import delete_options

VERSIONS: Final = ("policy/v1", "policy/v1beta1")


def options_of(body: Any, name: str, options: dict[str, Any], query: Query) -> dict[str, Any]:
    """The options of the deletion that an Eviction asks for. Raises ApiError 400, 422."""
    if not isinstance(body, dict) or body.get("kind", "Eviction") != "Eviction":
        raise errors.bad_request("the body of an eviction is an Eviction object of policy/v1")
    if body.get("apiVersion", VERSIONS[0]) not in VERSIONS:
        raise errors.bad_request(f"apiVersion is {errors.show(body['apiVersion'])}; an Eviction is of {VERSIONS[0]}")
    meta = body.get("metadata") or {}
    if not isinstance(meta, dict) or meta.get("name") != name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    given = delete_options(query, body.get("deleteOptions") or {})
    if options.get("dry_run"):
        given["dry_run"] = True
    return given


async def evict(backend: Backend, key: Key, options: dict[str, Any], actor: str, manager: str) -> None:
    """Evicts a pod. Raises ApiError."""
    under_way = eviction.Eviction(eviction.evict(backend.api.kinds, key, options, manager))
    while under_way.effect is not None:
        try:
            value = await _perform(backend, under_way.effect, actor)
        except ApiError as error:
            under_way.refuse(error)
        else:
            under_way.answer(value)


async def _perform(backend: Backend, effect: Effect, actor: str) -> Any:
    if effect.op == "get":
        return backend.store.get(effect.what)
    if effect.op == "list":
        return tuple(backend.store.query(effect.what))
    if effect.op == "stamp":
        return backend.now()
    reply = await backend.write(effect.what._replace(actor=actor, now=backend.now()))
    return reply.obj
