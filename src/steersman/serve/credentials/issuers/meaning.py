"""From the claims of a token to the user it stands for.

Source of the facts (order of the steps, what counts as nothing, wording): Kubernetes 1.36, apiserver
plugin/pkg/authenticator/token/oidc.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from steersman.api.access.user import CREDENTIAL, User
from steersman.api.cel.declare import unescape
from steersman.api.cel.environment import Program
from steersman.api.go_json import unmarshal
from steersman.serve.credentials.accounts import Rejected
from steersman.serve.credentials.issuers.settings import Condition, Issuer, Source

NO_TEXTS: Final = "expression must return a string or a list of strings"


class Escaped(dict[str, Any]):
    """An object whose fields expressions may also name as they name those of kinds: `a__dot__b`."""

    def __missing__(self, name: str) -> Any:
        plain = unescape(name)
        if plain is None or plain == name:
            raise KeyError(name)
        return self[plain]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (super().__contains__(name) or super().__contains__(unescape(name)))


def seen(value: Any) -> Any:
    """JSON as expressions see it: all numbers are doubles, as where Go reads it."""
    if isinstance(value, dict):
        return Escaped({name: seen(item) for name, item in value.items()})
    if isinstance(value, list):
        return [seen(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def user_of(issuer: Issuer, claims: Mapping[str, Any]) -> User:
    """The user of a token whose signature, issuer, audience and times are good. Raises `Rejected`."""
    if issuer.groups.claim and not issuer.groups.program and issuer.groups.claim not in claims:
        names = claims.get("_claim_names")
        if isinstance(names, dict) and issuer.groups.claim in names:
            told = "distributed claims are not followed; have the issuer put them into its tokens"
            raise Rejected(f"oidc: could not expand distributed claims: {told}")
    frame = {"claims": seen(dict(claims))}
    name = _username(issuer, claims, frame)
    groups = _groups(issuer.groups, claims, frame)
    uid = _text(issuer.uid, claims, frame, "uid") if issuer.uid != Source() else ""
    extra = _extra(issuer, claims, frame)
    for claim, value in issuer.required:
        if claim not in claims:
            raise Rejected(f"oidc: required claim {claim} not present in ID token")
        found = claims[claim]
        if not isinstance(found, str):
            raise Rejected(f"oidc: parse claim {claim}: {unmarshal(found, 'string')}")
        if found != value:
            raise Rejected(f"oidc: required claim {claim} value does not match. Got = {found}, want = {value}")
    _check(issuer.claim_rules, frame, "claim validation expression")
    user = User(name, groups, uid, extra)
    shown = Escaped({key: list(values) for key, values in extra})
    known = Escaped({"username": name, "uid": uid, "groups": list(groups), "extra": shown})
    _check(issuer.user_rules, {"user": known}, "user info validation rule")
    return user


def _username(issuer: Issuer, claims: Mapping[str, Any], frame: Mapping[str, Any]) -> str:
    source = issuer.username
    name = _text(source, claims, frame, "username")
    if source.program is not None:
        if not name:
            raise Rejected("oidc: empty username via CEL expression is not allowed")
        return name
    if source.claim == "email" and "email_verified" in claims:
        if not isinstance(claims["email_verified"], bool):
            raise Rejected("oidc: parse 'email_verified' claim: it is not a boolean")
        if not claims["email_verified"]:
            raise Rejected("oidc: email not verified")
    return source.prefix + name


def _text(source: Source, claims: Mapping[str, Any], frame: Mapping[str, Any], what: str) -> str:
    if source.program is not None:
        value = _value(source.program, frame, f"{what} claim expression")
        if not isinstance(value, str):
            told = f"{what} claim expression must return a string"
            raise Rejected(f"oidc: error evaluating {what} claim expression: {told}")
        return value
    if source.claim not in claims:
        raise Rejected(f'oidc: parse {what} claim "{source.claim}": claim not present')
    found = claims[source.claim]
    if not isinstance(found, str):
        raise Rejected(f'oidc: parse {what} claim "{source.claim}": {unmarshal(found, "string")}')
    return found


def _groups(source: Source, claims: Mapping[str, Any], frame: Mapping[str, Any]) -> tuple[str, ...]:
    if source.program is not None:
        value = _value(source.program, frame, "group claim expression")
        return _texts(value, "oidc: error evaluating group claim expression")
    if not source.claim or claims.get(source.claim) is None:
        return ()
    found = claims[source.claim]
    listed = [found] if isinstance(found, str) else found
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise Rejected(f'oidc: parse groups claim "{source.claim}": it is neither a string nor a list of strings')
    return tuple([source.prefix + each for each in listed])


def _extra(
    issuer: Issuer, claims: Mapping[str, Any], frame: Mapping[str, Any]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, tuple[str, ...]] = {}
    if isinstance(claims.get("jti"), str) and claims["jti"]:
        found[CREDENTIAL] = (f"JTI={claims['jti']}",)
    for key, program in issuer.extra:
        value = _value(program, frame, "extra claim expression")
        texts = _texts(value, f"oidc: error evaluating extra claim expression: {program.source}")
        if texts:
            found[key] = texts
    return tuple(sorted(found.items()))


def _texts(value: Any, error: str) -> tuple[str, ...]:
    """A text or a list of texts; what is empty counts as nothing."""
    if value is None:
        return ()
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise Rejected(f"{error}: {NO_TEXTS}")
    return tuple([each for each in listed if each])


def _check(rules: Iterable[Condition], frame: Mapping[str, Any], what: str) -> None:
    for rule in rules:
        if _value(rule.program, frame, what) is not True:
            told = f"validation expression '{rule.program.source}' failed: {rule.message}"
            raise Rejected(f"oidc: error evaluating {what}: {told}")


def _value(program: Program, frame: Mapping[str, Any], what: str) -> Any:
    result = program.run(frame)
    if result.error is not None:
        told = f"expression '{program.source}' resulted in error: {result.error}"
        raise Rejected(f"oidc: error evaluating {what}: {told}")
    return result.value
