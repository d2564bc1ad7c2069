"""Reading a cluster by its kubeconfig. There is one verb here, GET: nothing can be written.

Facts: client-go's tools/clientcmd/api/v1/types.go for the file; Kubernetes' API concepts for `limit` and `continue`.
"""

from __future__ import annotations

import base64
import binascii
import ssl
import tempfile
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote, urlsplit

import orjson
import yaml

from steersman.api.kinds import Kind
from steersman.check.mistake import ScenarioError

MAX_CONFIG: Final = 1 << 20
"""Bytes of a kubeconfig: real ones have some thousand."""
MAX_PAGE: Final = 64 << 20
"""Bytes of one answer."""
PAGE: Final = 500
"""Objects of one answer, as kubectl asks for."""
MAX_OBJECTS: Final = 10_000
"""Objects that are read in all: no search takes more."""
TIMEOUT: Final = 30.0
"""Seconds for an answer to begin."""


class Cluster:
    """The API server of a kubeconfig's current context. Every method raises `ScenarioError`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._objects = 0
        cluster, user = self._config()
        where = urlsplit(str(cluster.get("server") or ""))
        if where.scheme not in ("http", "https") or not where.hostname:
            raise self._wrong("its cluster has no server; give a URL")
        self._prefix = where.path.rstrip("/")
        self._headers = {"Accept": "application/json"}
        if "tokenFile" in user:
            user["token"] = self._file(user["tokenFile"]).decode("ascii", "replace").strip()
        if user.get("token"):
            self._headers["Authorization"] = f"Bearer {user['token']}"
        if where.scheme == "https":
            context = self._tls(cluster, user)
            self._connection: HTTPConnection = HTTPSConnection(
                where.hostname, where.port, timeout=TIMEOUT, context=context
            )
        else:
            self._connection = HTTPConnection(where.hostname, where.port, timeout=TIMEOUT)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._connection.close()

    def list(self, kind: Kind) -> list[dict[str, Any]]:
        """Every object of a kind; none where the cluster does not serve it."""
        root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        out: list[dict[str, Any]] = []
        token = ""
        while True:
            page = self._get(f"{self._prefix}{root}/{kind.plural}?limit={PAGE}{token and f'&continue={quote(token)}'}")
            if page is None:
                return out
            items = page.get("items") or []
            if not isinstance(items, list) or not all(_named(item) for item in items):
                raise self._wrong(f"{kind.plural}: the answer is no list of objects")
            out += [{**item, "apiVersion": kind.api_version, "kind": kind.kind} for item in items]
            self._objects += len(items)
            if self._objects > MAX_OBJECTS:
                raise self._wrong(
                    f"the cluster has more than {MAX_OBJECTS:,} objects of these kinds; record a part of it"
                )
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return out

    def _get(self, path: str) -> dict[str, Any] | None:
        try:
            self._connection.request("GET", path, headers=self._headers)
            answer = self._connection.getresponse()
            body = answer.read(MAX_PAGE + 1)
        except (OSError, HTTPException) as error:
            raise self._wrong(f"the cluster cannot be reached: {error or type(error).__name__}") from None
        if answer.status == 404:
            return None
        if len(body) > MAX_PAGE:
            raise self._wrong(f"an answer of more than {MAX_PAGE >> 20} MB: {path}")
        try:
            page = orjson.loads(body)
        except orjson.JSONDecodeError:
            page = None
        if answer.status != 200 or not isinstance(page, dict):
            why = page.get("message") if isinstance(page, dict) else "no JSON"
            raise self._wrong(f"GET {path.partition('?')[0]}: {answer.status} {why}")
        return page

    # -- the file --------------------------------------------------------------------------------------------------

    def _config(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The current context's cluster and user."""
        raw = self._file(self.path, MAX_CONFIG)
        try:
            config = yaml.load(raw, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (yaml.YAMLError, RecursionError, ValueError):
            raise self._wrong("it is no YAML") from None
        if not isinstance(config, dict) or not config.get("current-context"):
            raise self._wrong("it has no current-context; give a kubeconfig, or a recording FILE.sktrace@TIME")
        context = self._entry(config, "contexts", "context", config["current-context"])
        user = self._entry(config, "users", "user", context["user"]) if context.get("user") else {}
        for name in ("exec", "auth-provider"):
            if name in user:
                raise self._wrong(f"its user asks a program ({name}); give one with a token or a client certificate")
        return self._entry(config, "clusters", "cluster", context.get("cluster")), user

    def _entry(self, config: dict[str, Any], section: str, kind: str, name: Any) -> dict[str, Any]:
        entries = config.get(section)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(kind), dict):
                return dict(entry[kind])
        raise self._wrong(f"{section} has no {name!r}")

    def _file(self, name: str, most: int = MAX_CONFIG) -> bytes:
        """A file; a relative name starts at the kubeconfig, as with kubectl."""
        path = Path(name) if name == self.path else Path(self.path).parent / name
        try:
            with path.open("rb") as file:
                raw = file.read(most + 1)
        except (OSError, ValueError) as error:
            raise self._wrong(f"{path}: {getattr(error, 'strerror', None) or error}") from None
        if len(raw) > most:
            raise self._wrong(f"{path} has more than {most:,} bytes")
        return raw

    def _data(self, entry: dict[str, Any], name: str) -> bytes | None:
        """`name-data`, or what stands in the file that `name` names."""
        if entry.get(f"{name}-data"):
            try:
                return base64.b64decode(str(entry[f"{name}-data"]), validate=True)
            except (binascii.Error, ValueError):
                raise self._wrong(f"{name}-data is no base64") from None
        return self._file(str(entry[name])) if entry.get(name) else None

    def _tls(self, cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
        if cluster.get("insecure-skip-tls-verify"):
            raise self._wrong("insecure-skip-tls-verify would trust anybody; give certificate-authority-data")
        try:
            authority = self._data(cluster, "certificate-authority")
            context = ssl.create_default_context(cadata=None if authority is None else authority.decode("ascii"))
            pair = self._data(user, "client-certificate"), self._data(user, "client-key")
            if pair[0] and pair[1]:
                with tempfile.TemporaryDirectory() as folder:  # ssl reads files only
                    file = Path(folder) / "pair.pem"
                    file.touch(0o600)
                    file.write_bytes(pair[0] + b"\n" + pair[1])
                    context.load_cert_chain(file)
        except (ssl.SSLError, ValueError) as error:
            raise self._wrong(f"its certificates cannot be used: {error}") from None
        return context

    def _wrong(self, text: str) -> ScenarioError:
        return ScenarioError(f"from {self.path}: {text}")


def _named(item: Any) -> bool:
    """Whether it can be an object."""
    meta = item.get("metadata") if isinstance(item, dict) else None
    return isinstance(meta, dict) and isinstance(meta.get("name"), str)
