"""The issuers that are believed: their keys, fetched when a token needs them, and whom a token stands for.

Nothing is fetched for a request that bears no token of one of them. A token may name a key nobody knows yet, and
anybody can write such a token; so an issuer is asked once in a while at most, whoever asks and however it went.

Source of the facts: OpenID Connect Discovery 1.0; Kubernetes 1.36, apiserver plugin/pkg/authenticator/token/oidc, and
go-oidc 2.5 (times, order of the checks, wording).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import ssl
from collections import OrderedDict
from typing import Any, Final, NamedTuple

import orjson

from steersman.api.access.user import User
from steersman.api.cel.values import MAX_TIME, NANO
from steersman.api.times import time_text
from steersman.kernel.effect import MICRO
from steersman.serve.credentials.accounts import Rejected, listed
from steersman.serve.credentials.issuers.keys import ALGORITHMS, Key, read_keys, signed_by
from steersman.serve.credentials.issuers.meaning import user_of
from steersman.serve.credentials.issuers.settings import NOBODY, Issuer, Settings, address_problems
from steersman.serve.credentials.signer import has_form, taken_apart
from steersman.serve.outgoing import Failed, fetched

FETCH_SECONDS: Final = 10.0
"""For the description of an issuer, and for its keys."""
AGAIN_SECONDS: Final = 5.0
"""From one fetch to the next: tokens signed by a new key wait so long at most."""
KEPT: Final = 2048
"""Users of tokens that are remembered, so that a request does not pay for a signature again."""
EARLY: Final = 60
"""Seconds before its beginning that a token already counts."""
GOOGLE: Final = "https://accounts.google.com"
log = logging.getLogger("steersman.serve.credentials")


class Token(NamedTuple):
    """A token taken apart. Nobody has checked it."""

    text: str
    header: dict[str, Any]
    claims: dict[str, Any]
    signature: bytes

    @property
    def issuer(self) -> str:
        """Who is said to have made it."""
        found = self.claims.get("iss")
        return GOOGLE if found == "accounts.google.com" else found if isinstance(found, str) else ""


def parsed(text: str) -> Token | None:
    """The parts of a token; None for any other text."""
    parts = taken_apart(text) if has_form(text) else None
    return None if parts is None else Token(text, *parts)


class _Known(NamedTuple):
    """Whom a token with a good signature stands for, and when (seconds)."""

    user: User
    begins: float
    ends: float


class Provider:
    """One issuer and its keys."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.keys: tuple[Key, ...] | None = None
        """None: never fetched yet."""
        self._fetching: asyncio.Task[None] | None = None
        self._next = 0.0
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    def lacks(self, token: Token) -> bool:
        """Whether the keys should be fetched for a token, and may be now."""
        if self._fetching is None and asyncio.get_running_loop().time() < self._next:
            return False
        return not any(self._fits(key, token) for key in self.keys or ())

    @staticmethod
    def _fits(key: Key, token: Token) -> bool:
        name = token.header.get("kid")
        return (not name or key.name == name) and token.header.get("alg") in key.algorithms

    async def fetch(self) -> None:
        """Fetches the keys; those who ask meanwhile wait for the same answer."""
        if self._fetching is None:
            self._fetching = asyncio.get_running_loop().create_task(self._fetch())
        await asyncio.shield(self._fetching)

    async def _fetch(self) -> None:
        url = self.issuer.url
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                document = await self._json(self.issuer.discovery)
                if not isinstance(document, dict) or document.get("issuer") != url:
                    said = document.get("issuer") if isinstance(document, dict) else None
                    raise Failed(f"the issuer is called {said!r} by its own description")
                where = document.get("jwks_uri")
                if not isinstance(where, str) or address_problems(where.partition("?")[0]):
                    raise Failed(f"its description names no https address of its keys: jwks_uri is {where!r}")
                keys = read_keys(await self._json(where))
            if keys != self.keys:
                self._known.clear()
            self.keys = keys
        except TimeoutError:
            log.warning("the keys of the issuer %s cannot be fetched: no answer in %d s", url, FETCH_SECONDS)
        except (Failed, ValueError, OSError, ssl.SSLError) as error:
            log.warning("the keys of the issuer %s cannot be fetched: %s", url, error)
        finally:
            self._next = asyncio.get_running_loop().time() + AGAIN_SECONDS
            self._fetching = None

    async def _json(self, url: str) -> Any:
        status, body = await fetched(url, self.issuer.trust)
        if status != 200:
            raise Failed(f"{url} answered {status}")
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise Failed(f"{url} is no JSON: {error}") from None

    def user(self, token: Token, now: int) -> User:
        """Whom a token stands for; `now` in seconds. Raises `Rejected`."""
        digest = hashlib.sha256(token.text.encode("ascii")).digest()
        known = self._known.get(digest)
        if known is None:
            self._verify(token)
            ends, begins = _times(token.claims)
            known = _Known(user_of(self.issuer, token.claims), begins, ends) if now <= ends else None
            if known is None:
                raise Rejected(_expired(ends))
            if len(self._known) >= KEPT:
                self._known.popitem(last=False)
            self._known[digest] = known
        if known.ends < now:
            raise Rejected(_expired(known.ends))
        if now + EARLY < known.begins:
            told = f"current time {_shown(now)} before the nbf (not before) time: {_shown(known.begins)}"
            raise Rejected(f"oidc: verify token: oidc: {told}")
        return known.user

    def _verify(self, token: Token) -> None:
        """Signature, issuer and audience."""
        algorithm = token.header.get("alg")
        if algorithm not in ALGORITHMS:
            told = f"expected {listed(ALGORITHMS)} got {listed([str(algorithm)])[1:-1]}"
            raise Rejected(f"oidc: verify token: oidc: id token signed with unsupported algorithm, {told}")
        if self.keys is None:
            raise Rejected("oidc: authenticator not initialized")
        text = token.text.rpartition(".")[0].encode("ascii")
        keys = [] if "crit" in token.header else [key for key in self.keys if self._fits(key, token)]
        if not any(signed_by(key, str(algorithm), text, token.signature) for key in keys):
            told = "failed to verify signature: failed to verify id token signature"
            raise Rejected(f"oidc: verify token: {told}")
        given = token.claims.get("aud")
        meant = [given] if isinstance(given, str) else given if isinstance(given, list) else []
        if not any(each in self.issuer.audiences for each in meant if isinstance(each, str)):
            mine = self.issuer.audiences
            wanted = listed(mine) if len(mine) > 1 else listed(mine)[1:-1]
            told = f"expected audience {'in ' if len(mine) > 1 else ''}{wanted} got {listed(map(str, meant))}"
            raise Rejected(f"oidc: verify token: oidc: {told}")


def _times(claims: dict[str, Any]) -> tuple[float, float]:
    """When a token ends and when it begins, in seconds. Raises `Rejected`."""
    found = []
    for name in ("exp", "nbf"):
        value = claims.get(name) or 0
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Rejected(f"oidc: verify token: oidc: failed to unmarshal claims: {name} is not a number")
        found.append(value)
    return found[0], found[1]


def _expired(ends: float) -> str:
    return f"oidc: verify token: oidc: token is expired (Token Expiry: {_shown(ends)})"


def _shown(seconds: float) -> str:
    """A time as Go shows it; without one, Go's own zero."""
    if not seconds:
        return "0001-01-01 00:00:00 +0000 UTC"
    text = time_text(int(seconds)) if 0 < seconds <= MAX_TIME // NANO else str(seconds)
    return text.replace("T", " ").replace("Z", " +0000 UTC")


class Issuers:
    """All of them, and whether anybody may be nobody. What is believed may change while it is used."""

    def __init__(self, settings: Settings = NOBODY) -> None:
        self.providers: dict[str, Provider] = {}
        self.use(settings)

    def use(self, settings: Settings) -> None:
        """From now on these are believed. The keys of those that stay are kept."""
        before = self.providers
        self.settings = settings
        self.providers = {issuer.url: Provider(issuer) for issuer in settings.issuers}
        for url, provider in self.providers.items():
            if url in before and before[url].issuer.discovery == provider.issuer.discovery:
                provider.keys = before[url].keys

    def anybody(self, path: str) -> bool:
        """Whether a request without credentials for that path is one of system:anonymous."""
        settings = self.settings
        return settings.anonymous and (not settings.paths or path in settings.paths)

    def lacks(self, text: str) -> bool:
        """Whether `prepare` has something to do for a token."""
        found = self._of(text)
        return found is not None and found[0].lacks(found[1])

    async def prepare(self, text: str) -> None:
        """Fetches what is needed to judge a token, if it may be fetched."""
        found = self._of(text)
        if found is not None and found[0].lacks(found[1]):
            await found[0].fetch()

    async def warm(self) -> None:
        """Fetches the keys of all, so that the first tokens need not wait."""
        await asyncio.gather(*[provider.fetch() for provider in self.providers.values()])

    def user(self, text: str, now: int) -> User | None:
        """Whom a token stands for; None where it is none of these issuers'. `now` in microseconds. Raises
        `Rejected`."""
        found = self._of(text)
        return None if found is None else found[0].user(found[1], now // MICRO)

    def _of(self, text: str) -> tuple[Provider, Token] | None:
        """A token taken apart, and whose it is said to be; None where it is none of theirs."""
        token = parsed(text) if self.providers else None
        provider = None if token is None else self.providers.get(token.issuer)
        return None if token is None or provider is None else (provider, token)
