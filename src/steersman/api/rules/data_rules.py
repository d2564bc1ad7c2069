"""What ConfigMaps and Secrets must look like: keys, sizes, and what a type of Secret asks for.

Source of the facts: kubernetes `pkg/apis/core/validation/validation.go` (ValidateConfigMap,
ValidateSecret), release 1.36.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import orjson

from steersman.api.errors import Cause
from steersman.api.go_json import OBJECT, unmarshal
from steersman.api.rules import rules
from steersman.api.rules.rules import Causes, Object
from steersman.kernel.value import EMPTY

MAX_SIZE: Final = 1 << 20
"""Bytes of all values of one ConfigMap or Secret."""
TOKEN_TYPE: Final = "kubernetes.io/service-account-token"
"""The type of a Secret with the token of an account."""
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
"""Annotations of such a Secret: whose token it has."""
_REDACTED: Final = "<secret contents redacted>"
_DOCKER: Final[Mapping[str, str]] = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


def keys(out: Causes, path: str, data: Object) -> None:
    """The keys of a part with data."""
    for key in data:
        rules.named(out, f"{path}[{key}]", key, rules.config_key_problems)


def secret_data(out: Causes, path: str, data: Object) -> None:
    """The data of a Secret, in base64."""
    keys(out, path, data)
    if sum(map(_decoded, data.values())) > MAX_SIZE:
        out.append(Cause.too_long(path, MAX_SIZE))


def config_map(out: Causes, name: str, parts: Mapping[str, Any]) -> None:
    """Both parts of a ConfigMap together."""
    data, binary = parts.get("data") or EMPTY, parts.get("binaryData") or EMPTY
    for key in data:
        if key in binary:
            out.append(Cause.invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    if sum(map(len, data.values())) + sum(map(_decoded, binary.values())) > MAX_SIZE:
        out.append(Cause.too_long("", MAX_SIZE))


def _decoded(text: str) -> int:
    return len(text) // 4 * 3 - text.endswith("=") - text.endswith("==")


def typed_secret(out: Causes, meta: Object, spec: Object, rest: Object) -> None:
    """What the type of a Secret asks for."""
    kind, data = rest.get("type") or "", rest.get("data") or EMPTY
    if kind == TOKEN_TYPE:
        if not (meta.get("annotations") or EMPTY).get(ACCOUNT_NAME):
            out.append(Cause.required(f"metadata.annotations[{ACCOUNT_NAME}]"))
    elif kind in _DOCKER:
        _docker(out, f"data[{_DOCKER[kind]}]", data.get(_DOCKER[kind]))
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            out += [Cause.required("data[username]"), Cause.required("data[password]")]
    elif kind == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            out.append(Cause.required("data[ssh-privatekey]"))
    elif kind == "kubernetes.io/tls":
        out.extend(Cause.required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data)


def _docker(out: Causes, path: str, encoded: str | None) -> None:
    """The credentials of a registry: JSON, an object."""
    if encoded is None:
        out.append(Cause.required(path))
        return
    text = base64.b64decode(encoded)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as problem:
        out.append(Cause.invalid(path, _REDACTED, _told(text, problem.pos)))
        return
    if value is not None and not isinstance(value, dict):
        out.append(Cause.invalid(path, _REDACTED, unmarshal(value, OBJECT)))


def _told(text: bytes, at: int) -> str:
    """Go's words for a text that is no JSON; it tells the character it stopped at."""
    shown = text.decode("utf-8", "replace")
    if at >= len(shown.rstrip()):
        return "unexpected end of JSON input"
    char = shown[at]
    quoted = "'\\''" if char == "'" else f"'{char}'"
    return f"invalid character {quoted} looking for beginning of value"
