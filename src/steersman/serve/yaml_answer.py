"""Answers in YAML, for clients that ask for it: any JSON answer of the API but a watch, as Go's YAML writes it.

Keys are in the order of Go's library, numbers in them by value; text is plain where it reads as text again, a literal
block where it has several lines. Source of the facts: `sigs.k8s.io/yaml` and `go.yaml.in/yaml/v2` (sorter.go,
encode.go) as kube-apiserver 1.36 uses them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import aclosing
from functools import cmp_to_key, lru_cache
from itertools import takewhile
from typing import Any, ClassVar, Final

import orjson
import yaml

from steersman.api import errors
from steersman.serve.accept import YAML
from steersman.serve.aside import LARGE, aside
from steersman.serve.message import Response
from steersman.serve.yaml_body import resolve

ROOTS: Final = ("/api", "/apis")
"""Paths whose documents are written in the form a client asks for; the others are JSON, or text."""
MAX_BYTES: Final = 16 << 20
"""Of the JSON of an answer: more would take a thread a quarter of a minute, and a client can list in pages."""
_TAKEN: Final = frozenset(
    {"y", "Y", "n", "N", *[sign + name for sign in ("", "+", "-") for name in (".inf", ".Inf", ".INF")]}
) | {".nan", ".NaN", ".NAN"}
"""Text that Go's reader takes for a boolean or a number, and ours does not."""
_LIKE_TIMES: Final = re.compile(r"\d{4}-\d\d?-\d\d?([Tt ].*)?\Z|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?\Z")
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


async def in_yaml(path: str, response: Response) -> Response:
    """The response in YAML, if it is JSON from one of `ROOTS`. Raises ApiError 413."""
    headers = tuple(response.headers)
    if not path.startswith(ROOTS) or ("content-type", "application/json") not in headers:
        return response
    body = response.body
    if not isinstance(body, bytes):
        if response.endless:
            return response
        body = await _gathered(body)
    if len(body) > MAX_BYTES:
        told = (
            f"the answer has more than {MAX_BYTES} bytes, the most that are written as YAML; ask for JSON, or set limit"
        )
        raise errors.request_entity_too_large(told)
    text = await aside(written, body) if len(body) > LARGE else written(body)
    sent = [(name, YAML if name == "content-type" else value) for name, value in headers]
    return Response(response.status, sent, text)


async def _gathered(body: Any) -> bytes:
    """All of a body; of one that has more than MAX_BYTES no more than shows that."""
    found = bytearray()
    async with aclosing(body) as pieces:
        async for piece in pieces:
            found += piece
            if len(found) > MAX_BYTES:
                break
    return bytes(found)


def written(body: bytes) -> bytes:
    """A JSON document as YAML."""
    text: str = yaml.dump(
        orjson.loads(body), Dumper=_GoDumper, default_flow_style=False, allow_unicode=True, sort_keys=False, width=80
    )
    return text.removesuffix("...\n").encode()


class _GoDumper(_Dumper):  # type: ignore[misc]  # libyaml's, where it is there
    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {
        first: [(tag, form) for tag, form in forms if not tag.endswith((":merge", ":value"))]
        for first, forms in _Dumper.yaml_implicit_resolvers.items()
    }

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _object(dumper: Any, value: Mapping[str, Any]) -> Any:
    return dumper.represent_mapping("tag:yaml.org,2002:map", [(name, value[name]) for name in _sorted(tuple(value))])


def _string(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))


def _float(dumper: Any, value: float) -> Any:
    text = orjson.dumps(value).decode().replace(".0e", "e")
    return dumper.represent_scalar(f"tag:yaml.org,2002:{'float' if '.' in text else 'str'}", text)  # both are plain


_GoDumper.add_representer(dict, _object)
_GoDumper.add_representer(float, _float)
_GoDumper.add_representer(str, _string)


@lru_cache(maxsize=1 << 12)
def _style(text: str) -> str | None:
    """How Go's encoder writes a text: None is plain, or in quotes where it cannot be."""
    if "\n" in text:
        return "|"
    plain = text not in _TAKEN and isinstance(resolve(text), str) and _LIKE_TIMES.match(text) is None
    return None if plain else '"'


@lru_cache(maxsize=1 << 12)
def _sorted(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(names, key=_ORDER))


def _compare(one: str, other: str) -> int:
    """Letters after everything else, and digits by the number they make."""
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a == b:
            continue
        if a.isalpha() and b.isalpha():
            return -1 if a < b else 1
        if a.isalpha() or b.isalpha():
            return -1 if b.isalpha() else 1
        began = "0" in (a, b) and any(char != "0" for char in takewhile(_is_digit, reversed(one[:at])))
        head = "1" if began else ""
        numbers = [head + "".join(takewhile(_is_digit, text[at:])) for text in (one, other)]
        values = [int(number or "0") for number in numbers]
        left, right = (values[0], len(numbers[0]), ord(a)), (values[1], len(numbers[1]), ord(b))
        return -1 if left < right else 1
    return len(one) - len(other)


def _is_digit(char: str) -> bool:
    return char in "0123456789"


_ORDER: Final = cmp_to_key(_compare)
