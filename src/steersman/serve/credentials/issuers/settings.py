"""Who else is believed: an AuthenticationConfiguration of apiserver.config.k8s.io.

Source of the facts (fields, what must hold, wording): Kubernetes 1.36, apiserver pkg/apis/apiserver (v1, validation)
and pkg/authentication/cel.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from steersman.api.access.token_request import ISSUER
from steersman.api.admission.expressions import USER_INFO
from steersman.api.cel.environment import Environment, Program
from steersman.api.cel.faults import CompileError
from steersman.api.cel.tree import Ident, Node, Select, children
from steersman.api.cel.types import DYN, STRING, map_of
from steersman.api.errors import Cause
from steersman.api.rules.rules import domain_path
from steersman.serve.files import FileError
from steersman.serve.outgoing import trusting
from steersman.serve.settings_file import document, part, texts

VERSIONS: Final = tuple([f"apiserver.config.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1")])
MAX_ISSUERS: Final = 64
"""As many as kube-apiserver takes."""
MATCH_ANY: Final = "MatchAny"
_ROOT: Final = {"apiVersion": str, "kind": str, "jwt": list, "anonymous": dict}
_JWT: Final = {"issuer": dict, "claimValidationRules": list, "claimMappings": dict, "userValidationRules": list}
_ISSUER: Final = {
    "url": str, "discoveryURL": str, "certificateAuthority": str, "audiences": list, "audienceMatchPolicy": str,
    "egressSelectorType": str,
}  # fmt: skip
_MAPPINGS: Final = {"username": dict, "groups": dict, "uid": dict, "extra": list}
_PREFIXED: Final = {"claim": str, "prefix": str, "expression": str}
_CLAIM: Final = {"claim": str, "expression": str}
_EXTRA: Final = {"key": str, "valueExpression": str}
_CLAIM_RULE: Final = {"claim": str, "requiredValue": str, "expression": str, "message": str}
_USER_RULE: Final = {"expression": str, "message": str}
_RESERVED: Final = ("kubernetes.io", "k8s.io")
UNVERIFIED: Final = (
    "claims.email_verified must be used in claimMappings.username.expression or "
    "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in "
    "claimMappings.username.expression"
)


class Source(NamedTuple):
    """Where a part of a user comes from: a claim with a prefix, or an expression; "" and None: from nowhere."""

    claim: str = ""
    prefix: str = ""
    program: Program | None = None


class Condition(NamedTuple):
    """What must be true, and what is said where it is not."""

    program: Program
    message: str


class Issuer(NamedTuple):
    """One issuer of tokens, and what its tokens mean."""

    url: str
    discovery: str
    """Where its description is."""
    audiences: tuple[str, ...]
    trust: ssl.SSLContext
    username: Source
    groups: Source
    uid: Source
    extra: tuple[tuple[str, Program], ...]
    required: tuple[tuple[str, str], ...]
    """Claims that must have these values."""
    claim_rules: tuple[Condition, ...]
    user_rules: tuple[Condition, ...]


class Settings(NamedTuple):
    """Who is believed."""

    issuers: tuple[Issuer, ...] = ()
    anonymous: bool = False
    """Whether requests without credentials are those of system:anonymous."""
    paths: frozenset[str] = frozenset()
    """Where they are; everywhere, if none is named."""


NOBODY: Final = Settings()


@cache
def _claims() -> Environment:
    return Environment({"claims": map_of(STRING, DYN)})


@cache
def _user() -> Environment:
    return Environment({"user": USER_INFO})


def read_settings(data: bytes, name: str) -> Settings:
    """The settings in a file called `name`. Raises `FileError`, whose text names the fields."""
    given = document(data, name, VERSIONS, "AuthenticationConfiguration", _ROOT)
    out: list[Cause] = []
    found: list[Issuer] = []
    jwt = given.get("jwt") or []
    if len(jwt) > MAX_ISSUERS:
        raise FileError(f"{name}: jwt: Too many: {len(jwt)}: must have at most {MAX_ISSUERS} items")
    for at, each in enumerate(jwt):
        issuer = _Reader(f"jwt[{at}]", name, out).issuer(each)
        for field, mine, theirs in (
            ("url", issuer.url, [other.url for other in found]),
            ("discoveryURL", issuer.discovery, [other.discovery for other in found]),
        ):
            if mine in theirs:
                out.append(Cause.duplicate(f"jwt[{at}].issuer.{field}", mine))
        found.append(issuer)
    anonymous = part(given.get("anonymous") or {}, {"enabled": bool, "conditions": list}, f"{name}: anonymous")
    conditions = anonymous.get("conditions") or []
    paths = [part(each, {"path": str}, f"{name}: anonymous.conditions").get("path") or "" for each in conditions]
    if paths and not anonymous.get("enabled"):
        detail = "enabled should be set to true when conditions are defined"
        out.append(Cause.invalid("anonymous.conditions", conditions, detail))
    if out:
        raise FileError(f"{name}: {'; '.join(map(str, out))}")
    return Settings(tuple(found), bool(anonymous.get("enabled")), frozenset(paths))


class _Reader:
    """Reads one issuer; what is wrong goes to `out`."""

    def __init__(self, at: str, name: str, out: list[Cause]) -> None:
        self.at = at
        self.name = name
        self.out = out
        self.email = self.verified = False
        """Whether the expressions of interest look at these claims."""

    def part(self, value: Any, fields: Mapping[str, type], where: str) -> Mapping[str, Any]:
        return part(value or {}, fields, f"{self.name}: {self.at}.{where}".removesuffix("."))

    def issuer(self, value: Any) -> Issuer:
        given = self.part(value, _JWT, "")
        issuer = self.part(given.get("issuer"), _ISSUER, "issuer")
        url, elsewhere = issuer.get("url") or "", issuer.get("discoveryURL") or ""
        self._url(url, elsewhere)
        audiences = texts(issuer, "audiences", f"{self.name}: {self.at}.issuer")
        self._audiences(audiences, issuer.get("audienceMatchPolicy") or "")
        if issuer.get("egressSelectorType"):
            detail = "there is no egress selector here; leave it out"
            self.out.append(Cause.invalid(f"{self.at}.issuer.egressSelectorType", issuer["egressSelectorType"], detail))
        required, claim_rules = self._claim_rules(given.get("claimValidationRules") or [])
        mappings = self.part(given.get("claimMappings"), _MAPPINGS, "claimMappings")
        username = self._mapping(mappings, "username", _PREFIXED)
        self.email = username.program is not None and looks_at(username.program.root, "email")
        if username == Source():
            self._add(Cause.required(f"{self.at}.claimMappings.username", "claim or expression is required"))
        groups, uid = self._mapping(mappings, "groups", _PREFIXED), self._mapping(mappings, "uid", _CLAIM)
        verified = username.program is not None and looks_at(username.program.root, "email_verified")
        extra = self._extra(mappings.get("extra") or [])
        if self.email and not (verified or self.verified):
            field, text = f"{self.at}.claimMappings.username.expression", mappings["username"]["expression"]
            self._add(Cause.invalid(field, text, UNVERIFIED))
        user_rules = self._user_rules(given.get("userValidationRules") or [])
        discovery = elsewhere or url.removesuffix("/") + "/.well-known/openid-configuration"
        trust = self._trust(issuer.get("certificateAuthority") or "")
        return Issuer(url, discovery, audiences, trust, username, groups, uid, extra, required, claim_rules, user_rules)

    def _add(self, cause: Cause) -> None:
        if cause not in self.out:
            self.out.append(cause)

    # -- where it is -------------------------------------------------------------------------------------------

    def _url(self, url: str, elsewhere: str) -> None:
        at = f"{self.at}.issuer.url"
        if not url:
            self._add(Cause.required(at))
        elif url == ISSUER:
            self._add(Cause.invalid(at, url, f"URL must not overlap with disallowed issuers: [{ISSUER}]"))
        if url:
            self._address(at, url)
        if elsewhere:
            at = f"{self.at}.issuer.discoveryURL"
            if url.rstrip("/") == elsewhere.rstrip("/"):
                self._add(Cause.invalid(at, elsewhere, "discoveryURL must be different from URL"))
            self._address(at, elsewhere)

    def _address(self, at: str, url: str) -> None:
        for problem in address_problems(url):
            self._add(Cause.invalid(at, url, problem))

    def _audiences(self, audiences: tuple[str, ...], policy: str) -> None:
        at = f"{self.at}.issuer.audiences"
        if not audiences:
            self._add(Cause.required(at, f"at least one {at} is required"))
        for index, audience in enumerate(audiences):
            if not audience:
                self._add(Cause.required(f"{at}[{index}]"))
            if audience in audiences[:index]:
                self._add(Cause.duplicate(f"{at}[{index}]", audience))
        if policy == MATCH_ANY or (len(audiences) < 2 and not policy):
            return
        many = len(audiences) > 1
        must = "must be MatchAny for multiple audiences" if many else "must be empty or MatchAny for single audience"
        self._add(Cause.invalid(f"{self.at}.issuer.audienceMatchPolicy", policy, f"audienceMatchPolicy {must}"))

    def _trust(self, pem: str) -> ssl.SSLContext:
        try:
            return trusting(pem)
        except (ssl.SSLError, ValueError) as error:
            self._add(Cause.invalid(f"{self.at}.issuer.certificateAuthority", "<omitted>", str(error)))
            return trusting("")

    # -- what its tokens mean ----------------------------------------------------------------------------------

    def _mapping(self, mappings: Mapping[str, Any], name: str, fields: Mapping[str, type]) -> Source:
        given = self.part(mappings.get(name), fields, f"claimMappings.{name}")
        at = f"{self.at}.claimMappings.{name}"
        claim, text, prefix = given.get("claim") or "", given.get("expression") or "", given.get("prefix")
        if claim and text:
            self._add(Cause.invalid(at, "", "claim and expression can't both be set"))
        elif text:
            if prefix is not None:
                self._add(Cause.invalid(f"{at}.prefix", prefix, "may not be specified when expression is set"))
            return Source(text, "", self._compiled(_claims(), text, f"{at}.expression"))
        elif claim and prefix is None and "prefix" in fields:
            detail = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
            self._add(Cause.required(f"{at}.prefix", detail))
        return Source(claim, prefix or "")

    def _extra(self, given: list[Any]) -> tuple[tuple[str, Program], ...]:
        found: dict[str, Program | None] = {}
        for index, each in enumerate(given):
            at = f"{self.at}.claimMappings.extra[{index}]"
            mapping = self.part(each, _EXTRA, f"claimMappings.extra[{index}]")
            key, text = mapping.get("key") or "", mapping.get("valueExpression") or ""
            domain_path(self.out, f"{at}.key", key)
            if key != key.lower():
                self._add(Cause.invalid(f"{at}.key", key, "must be lowercase"))
            if f".{key.partition('/')[0]}".endswith(tuple([f".{name}" for name in _RESERVED])) and "/" in key:
                detail = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
                self._add(Cause.invalid(f"{at}.key", key, detail))
            if key in found:
                self._add(Cause.duplicate(f"{at}.key", key))
            elif not text:
                self._add(Cause.required(f"{at}.valueExpression"))
            else:
                found[key] = self._watched(self._compiled(_claims(), text, f"{at}.valueExpression"))
        return tuple([(key, program) for key, program in found.items() if program is not None])

    def _watched(self, program: Program | None) -> Program | None:
        self.verified = self.verified or (program is not None and looks_at(program.root, "email_verified"))
        return program

    def _claim_rules(self, given: list[Any]) -> tuple[tuple[tuple[str, str], ...], tuple[Condition, ...]]:
        required: dict[str, str] = {}
        rules: dict[str, Condition | None] = {}
        for index, each in enumerate(given):
            at = f"{self.at}.claimValidationRules[{index}]"
            rule = self.part(each, _CLAIM_RULE, f"claimValidationRules[{index}]")
            claim, text = rule.get("claim") or "", rule.get("expression") or ""
            if claim and text:
                self._add(Cause.invalid(at, claim, "claim and expression can't both be set"))
            elif claim:
                if rule.get("message"):
                    detail = "may not be specified when claim is set"
                    self._add(Cause.invalid(f"{at}.message", rule["message"], detail))
                if claim in required:
                    self._add(Cause.duplicate(f"{at}.claim", claim))
                required[claim] = rule.get("requiredValue") or ""
            elif text:
                if rule.get("requiredValue"):
                    detail = "may not be specified when expression is set"
                    self._add(Cause.invalid(f"{at}.requiredValue", rule["requiredValue"], detail))
                self._condition(rules, _claims(), rule, at)
            else:
                self._add(Cause.required(at, "claim or expression is required"))
        for condition in rules.values():
            self._watched(None if condition is None else condition.program)
        return tuple(required.items()), tuple([rule for rule in rules.values() if rule is not None])

    def _user_rules(self, given: list[Any]) -> tuple[Condition, ...]:
        rules: dict[str, Condition | None] = {}
        for index, each in enumerate(given):
            at = f"{self.at}.userValidationRules[{index}]"
            rule = self.part(each, _USER_RULE, f"userValidationRules[{index}]")
            if rule.get("expression"):
                self._condition(rules, _user(), rule, at)
            else:
                self._add(Cause.required(f"{at}.expression"))
        return tuple([rule for rule in rules.values() if rule is not None])

    def _condition(
        self, rules: dict[str, Condition | None], environment: Environment, rule: Mapping[str, Any], at: str
    ) -> None:
        text = rule["expression"]
        if text in rules:
            self._add(Cause.duplicate(f"{at}.expression", text))
            return
        program = self._compiled(environment, text, f"{at}.expression")
        if program is not None and program.type.kind != "bool":
            self._add(Cause.invalid(f"{at}.expression", text, "must evaluate to bool"))
        rules[text] = None if program is None else Condition(program, rule.get("message") or "")

    def _compiled(self, environment: Environment, text: str, at: str) -> Program | None:
        try:
            return environment.compile(text)
        except CompileError as error:
            self._add(Cause.invalid(at, text, f"compilation failed: {error}"))
            return None


def address_problems(url: str) -> list[str]:
    """What is wrong with the address of an issuer."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return [str(error)]
    found = [] if parts.scheme == "https" else ["URL scheme must be https"]
    if not parts.hostname or not url.isascii() or any(char <= " " for char in url):
        found.append("URL must name a host, in printable ASCII")
    if parts.username is not None:
        found.append("URL must not contain a username or password")
    if parts.query:
        found.append("URL must not contain a query")
    if parts.fragment:
        found.append("URL must not contain a fragment")
    return found


def looks_at(node: Node, claim: str) -> bool:
    """Whether an expression selects that claim."""
    if isinstance(node, Select) and node.field == claim:
        of = node.operand
        if isinstance(of, Ident) and of.name == "claims":
            return True
    return any(looks_at(child, claim) for child in children(node))
