"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902) over immutable JSON values.

Neither the document nor the patch is ever changed. Only the containers along a changed path are copied, as plain
dicts and lists; every other part of the result *is* the document's or the patch's part, so a patch of one field
costs its path. Where nothing changes, the document itself comes back. Do not change a patch after applying it.

Failures are kube-apiserver's: 400 for a malformed patch, 422 for one that does not apply (kopf relies on it for a
failed `test`), 413 for too many operations. Source of the facts: apiserver `endpoints/handlers/patch.go` of release
1.36 and the behaviour of the library it uses, evanphx/json-patch v4, which is more lenient than RFC 6902:

- `replace` of an absent member of an object adds it; `copy` of an absent member adds null;
- `test` for null (or without a value) holds for an absent member;
- negative indices count from the end, and indices may have leading zeros or a plus sign;
- `move` takes first and inserts then, so a path below `from` may name what has moved up in a list;
- the whole document may be tested, and replaced by an object or list, but not added, removed, moved or copied.

Two differences are deliberate. Numbers are compared by value in `test`, as RFC 6902 says, so 1 equals 1.0. A list in
a merge patch replaces verbatim, as RFC 7386 says; that library drops nulls from objects inside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

from steersman.api.errors import ApiError, Cause, bad_request, request_entity_too_large, show, unprocessable
from steersman.api.go_json import OBJECT, unmarshal

# kube-apiserver's limit (maxJSONPatchOperations).
MAX_OPERATIONS: Final = 10_000
# kube-apiserver's limit of what the copies of one patch may add up to, in bytes of JSON (JSONPatchMaxCopyBytes).
MAX_COPY_BYTES: Final = 3 * 1024 * 1024
# Nesting of a patch and of what it makes. The deepest real schemas stay below 64; recursive code over objects must
# not meet Python's recursion limit.
MAX_DEPTH: Final = 128

# The most values that a body of kube-apiserver's limit, 3 MiB, can hold: two bytes each.
MAX_PARTS: Final = 3 * 1024 * 1024 // 2

_NO_OBJECT = (str, int, float, list, tuple, type(None))  # asking the abstract class costs far more than this
_TEXT_OR_NONE = (str, type(None))
_INT64 = 1 << 63
_INDEX = re.compile(r"[+-]?[0-9]{1,18}")
_ESCAPE = re.compile(r"~[01]")


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether the value is a JSON object: a dict or any other mapping."""
    return isinstance(value, dict) or (not isinstance(value, _NO_OBJECT) and isinstance(value, Mapping))


def is_array(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether the value is a JSON array: a list or any other sequence but text and bytes."""
    if isinstance(value, list):
        return True
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview)


def same(left: object, right: object) -> bool:
    """Whether two JSON values are equal: numbers by value, booleans never equal to numbers."""
    if left is right:
        return True
    if is_object(left):
        if not is_object(right) or len(left) != len(right):
            return False
        return all(key in right and same(part, right[key]) for key, part in left.items())
    if is_array(left):
        if not is_array(right) or len(left) != len(right):
            return False
        return all(map(same, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    return left == right


def check_json(value: object, what: str = "the patch") -> int:
    """The depth of a JSON value: 0 for a scalar, 1 for a flat container. Raises ApiError 400.

    Refused: other types, keys that are no text, integers beyond 64 bits, NaN and infinities, text that is no
    Unicode, more than MAX_DEPTH levels or MAX_PARTS values; the message has the path of the part at fault.
    """
    room = [MAX_PARTS]
    try:
        return _plain_depth(value, MAX_DEPTH, room)
    except _NotPlain:  # perhaps wrong, perhaps only uncommon: look closely
        return _checked_depth(value, what)


class _NotPlain(Exception):
    """The quick look met something that needs the close one."""


def _plain_depth(value: object, levels: int, room: list[int]) -> int:
    """The depth of a value made of dicts, lists, ASCII text and small numbers: a quarter of the close look's time."""
    if isinstance(value, dict):
        parts: Any = value.values()
        for key in value:
            if type(key) is not str or not key.isascii():
                raise _NotPlain
    elif isinstance(value, list):
        parts = value
    elif type(value) is int:
        if -_INT64 <= value < _INT64:
            return 0
        raise _NotPlain
    elif value is None or isinstance(value, bool) or (type(value) is str and value.isascii()):
        return 0
    else:
        raise _NotPlain
    room[0] -= len(value)
    if not levels or room[0] < 0:
        raise _NotPlain
    deepest = 0
    for part in parts:
        if type(part) is str and part.isascii():
            continue
        deepest = max(deepest, _plain_depth(part, levels - 1, room))
    return deepest + 1


def _checked_depth(value: object, what: str) -> int:
    depth = parts = 0
    pending: list[tuple[object, tuple[Any, ...], int]] = [(value, (), 0)]
    while pending:
        part, path, level = pending.pop()
        if is_object(part) or is_array(part):
            level += 1
            depth = max(depth, level)
            parts += len(part)
            if parts > MAX_PARTS:
                raise bad_request(f"{what} holds more than {MAX_PARTS} values; send it in parts")
            if level > MAX_DEPTH:
                raise bad_request(f"{what} is nested more than {MAX_DEPTH} levels deep; make it flatter")
            if is_object(part):
                for key in part:
                    _check_text(key, what, path, "key")
                pending += ((inner, (path, key), level) for key, inner in part.items())
            else:
                pending += ((inner, (path, index), level) for index, inner in enumerate(part))
        elif isinstance(part, str):
            _check_text(part, what, path, "value")
        elif part is not None and not isinstance(part, bool):
            _check_number(part, what, path)
    return depth


def _check_text(text: object, what: str, path: tuple[Any, ...], role: str) -> None:
    if not isinstance(text, str):
        raise bad_request(f"{what}: {_pointer(path)}: the {role} {show(text)} is not text")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise bad_request(f"{what}: {_pointer(path)}: the {role} is not Unicode text") from None


def _check_number(number: object, what: str, path: tuple[Any, ...]) -> None:
    if isinstance(number, int):
        if not -_INT64 <= number < _INT64:
            raise bad_request(f"{what}: {_pointer(path)}: the integer does not fit in 64 bits")
    elif not isinstance(number, float):
        raise bad_request(f"{what}: {_pointer(path)}: a {type(number).__name__} is no JSON value")
    elif number != number or number in (float("inf"), float("-inf")):
        raise bad_request(f"{what}: {_pointer(path)}: {number} is no JSON number")


def _pointer(path: tuple[Any, ...]) -> str:
    """The JSON pointer of a path kept as nested pairs."""
    tokens: list[str] = []
    while path:
        path, token = path
        tokens.append(str(token).replace("~", "~0").replace("/", "~1")[:64])
    return "".join(f"/{token}" for token in reversed(tokens)) or "the whole"


# --- merge patch ---------------------------------------------------------------------------------------------------


def merge_patch(document: Any, patch: object) -> Any:
    """The document with a JSON merge patch applied; the document itself if that changes nothing.

    The patch must be an object, as the API server demands. Raises ApiError 400.
    """
    if not is_object(patch):
        wrong = "Invalid JSON Patch" if patch is None else f"error decoding patch: {unmarshal(patch, OBJECT)}"
        raise bad_request(wrong)
    check_json(patch)
    return _merge(document, patch)


def _merge(target: Any, patch: Mapping[str, Any]) -> Any:
    """Depth is bounded by the patch's, which has been checked."""
    if not is_object(target):
        return _without_nulls(patch)
    result: dict[str, Any] | None = None  # made at the first change
    for key, value in patch.items():
        current = target.get(key)
        if value is None:
            if key in target:
                result = dict(target) if result is None else result
                del result[key]
            continue
        merged = _merge(current, value) if is_object(value) else value
        if merged is current or (not is_object(value) and key in target and _identical(current, value)):
            continue
        result = dict(target) if result is None else result
        result[key] = merged
    return target if result is None else result


def _without_nulls(patch: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object with null members dropped at every level of objects; itself if there are none."""
    result: dict[str, Any] | None = None
    for key, value in patch.items():
        kept = _without_nulls(value) if is_object(value) else value
        if kept is None or kept is not value:
            result = dict(patch) if result is None else result
            if kept is None:
                del result[key]
            else:
                result[key] = kept
    return patch if result is None else result


def _identical(left: object, right: object) -> bool:
    """As `same`, but 1 and 1.0 differ: only then may one stand for the other in stored bytes."""
    if left is right:
        return True
    if is_object(left):
        if not is_object(right) or len(left) != len(right):
            return False
        return all(key in right and _identical(part, right[key]) for key, part in left.items())
    if is_array(left):
        if not is_array(right) or len(left) != len(right):
            return False
        return all(map(_identical, left, right))
    return type(left) is type(right) and left == right


# --- JSON patch ----------------------------------------------------------------------------------------------------


def json_patch(document: Any, operations: object) -> Any:
    """The document with the operations of a JSON patch applied in order; the document itself if there are none.

    All or nothing: an operation that fails raises and the document is as before. Raises ApiError 400 for a patch
    that is no list of operations, 413 for more than MAX_OPERATIONS, and 422 when an operation does not apply; the
    message names the operation by its number from 0, its path and what is wrong.
    """
    if operations is None:
        return document
    if not is_array(operations):
        raise bad_request(f"error decoding patch: {unmarshal(operations, '[]handlers.jsonPatchOp')}")
    if len(operations) > MAX_OPERATIONS:
        found = f"{MAX_OPERATIONS}, got {len(operations)}"
        raise request_entity_too_large(f"The allowed maximum operations in a JSON patch is {found}")
    parsed = [_parse(operation, number) for number, operation in enumerate(operations)]
    run = _Run(document)
    for operation in parsed:
        try:
            run.apply(operation)
        except _DoesNotApply as problem:
            raise operation.refused(str(problem)) from None
    return run.document


@dataclass(slots=True)  # not frozen, for that would double the cost of making one
class _Operation:
    number: int
    op: str
    path: str | None
    source: str | None
    value: Any
    depth: int

    def refused(self, problem: str) -> ApiError:
        at = f"[{self.number}]"
        text = f"json patch operation {at} ({self.op[:20]} {show(self.path)[:300]}): {problem}"
        return unprocessable(text, [Cause("FieldValueInvalid", problem, f"{at}.path")])


class _DoesNotApply(Exception):
    """What is wrong with the operation being applied."""


def _parse(operation: object, number: int) -> _Operation:
    """The operation with the types of its members checked; whether it makes sense shows when it is applied."""
    if not is_object(operation):
        raise bad_request(f"error decoding patch: operation [{number}] must be an object with op and path")
    get = operation.get
    for name in ("op", "path", "from"):
        if not isinstance(get(name), _TEXT_OR_NONE):
            raise bad_request(f"error decoding patch: operation [{number}]: {name} must be text")
    value = get("value")
    depth = check_json(value, f"error decoding patch: operation [{number}]: value")
    return _Operation(number, get("op") or "", get("path"), get("from"), value, depth)


_ABSENT: Final = object()


@dataclass(slots=True)
class _Run:
    """One application of a patch. `own` holds the containers made here, which may be changed in place."""

    document: Any
    own: dict[int, object] = field(default_factory=dict)  # by id; holding them keeps the ids theirs
    copied: int = 0

    def apply(self, operation: _Operation) -> None:
        verb = _VERBS.get(operation.op)
        if verb is None:
            raise _DoesNotApply(f"unknown operation; use one of {', '.join(_VERBS)}")
        if operation.path is None:
            raise _DoesNotApply("the path is missing; give a JSON pointer such as /metadata/labels/app")
        verb(self, operation, _tokens(operation.path))

    def add(self, operation: _Operation, path: list[str]) -> None:
        self.insert(path, operation.value, operation.depth)

    def remove(self, operation: _Operation, path: list[str]) -> None:
        self.take(path)

    def replace(self, operation: _Operation, path: list[str]) -> None:
        if not path:
            if not (is_object(operation.value) or is_array(operation.value)):
                raise _DoesNotApply("the whole document can only be replaced by an object or a list")
            self.document = operation.value
            self.own.clear()
            return
        _limit_depth(len(path) + operation.depth)
        container, key = self.writable(path)
        if isinstance(container, list):
            container[_index(key, len(container))] = operation.value
        else:
            container[key] = operation.value

    def test(self, operation: _Operation, path: list[str]) -> None:
        found = self.document
        if path:
            container = self.find(path[:-1])
            found = container.get(path[-1]) if is_object(container) else _member(container, path[-1])
        if not same(found, operation.value):
            raise _DoesNotApply(f"the test failed: found {show(found)[:200]}, not {show(operation.value)[:200]}")

    def move(self, operation: _Operation, path: list[str]) -> None:
        source = _source(operation)
        _not_whole(path)
        value = self.take(source)
        deeper = len(path) > len(source)
        self.insert(path, value, self.grow(value) if deeper else 0)

    def copy(self, operation: _Operation, path: list[str]) -> None:
        source = _source(operation)
        container = self.find(source[:-1])
        value = container.get(source[-1]) if is_object(container) else _member(container, source[-1])
        depth = self.grow(value)
        self.own.clear()  # the value now stands in two places, so nothing may be changed in place any more
        self.insert(path, value, depth)

    def insert(self, path: list[str], value: Any, depth: int) -> None:
        """Put a value of this depth at the path: set a member, or insert into a list before the index."""
        _not_whole(path)
        _limit_depth(len(path) + depth)
        container, key = self.writable(path)
        if not isinstance(container, list):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(_index(key, len(container) + 1), value)

    def take(self, path: list[str]) -> Any:
        """Remove the value at the path and give it back."""
        _not_whole(path)
        container, key = self.writable(path)
        if isinstance(container, list):
            return container.pop(_index(key, len(container)))
        if key not in container:
            raise _DoesNotApply(f"there is no member {show(key)[:200]} to take away")
        return container.pop(key)

    def find(self, path: list[str]) -> Any:
        """The container at the path."""
        found = self.document
        for token in path:
            found = _member(found, token)
        if not (is_object(found) or is_array(found)):
            raise _DoesNotApply(f"the path leads into {show(found)[:200]}, which is no object or list")
        return found

    def writable(self, path: list[str]) -> tuple[Any, str]:
        """The container that holds the path's end, with every container above it made our own, and the last key."""
        self.find(path[:-1])  # fail before anything is copied
        self.document = container = self.owned(self.document)
        for token in path[:-1]:
            key: Any = _index(token, len(container)) if isinstance(container, list) else token
            container[key] = inner = self.owned(container[key])
            container = inner
        return container, path[-1]

    def owned(self, container: Any) -> Any:
        if id(container) in self.own:
            return container
        copy: Any = dict(container) if is_object(container) else list(container)
        self.own[id(copy)] = copy
        return copy

    def grow(self, value: object) -> int:
        """The depth of a value that goes to a second or deeper place; its size counts against MAX_COPY_BYTES.

        Shared parts could otherwise double the document with every operation, in size or in depth.
        """
        depth = 0
        pending = [(value, 0)]
        while pending:
            part, level = pending.pop()
            self.copied += len(part) + 2 if isinstance(part, str) else 2
            if self.copied > MAX_COPY_BYTES:
                raise _DoesNotApply(f"the copies of this patch add up to more than {MAX_COPY_BYTES} bytes")
            if is_object(part):
                depth = max(depth, level + 1)
                self.copied += sum(map(len, part)) + 3 * len(part)
                pending += ((inner, level + 1) for inner in part.values())
            elif is_array(part):
                depth = max(depth, level + 1)
                pending += ((inner, level + 1) for inner in part)
        return depth


_VERBS: Final[dict[str, Callable[[_Run, _Operation, list[str]], None]]] = {
    "add": _Run.add,
    "remove": _Run.remove,
    "replace": _Run.replace,
    "move": _Run.move,
    "copy": _Run.copy,
    "test": _Run.test,
}


def _tokens(pointer: str) -> list[str]:
    """The reference tokens of a JSON pointer (RFC 6901), unescaped."""
    if not pointer:
        return []
    if pointer[0] != "/":
        raise _DoesNotApply(f"the pointer {show(pointer)[:200]} must be empty or begin with /")
    tokens = pointer[1:].split("/")
    _limit_depth(len(tokens))
    if "~" not in pointer:
        return tokens
    return [_ESCAPE.sub(lambda found: "~/"[int(found[0][1])], token) for token in tokens]


def _source(operation: _Operation) -> list[str]:
    if operation.source is None:
        raise _DoesNotApply("from is missing; give the JSON pointer of the value to take")
    source = _tokens(operation.source)
    _not_whole(source)
    return source


def _not_whole(path: list[str]) -> None:
    if not path:
        raise _DoesNotApply("the whole document can only be tested and replaced")


def _limit_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _DoesNotApply(f"it would be nested more than {MAX_DEPTH} levels deep")


def _member(container: object, token: str) -> Any:
    if is_object(container):
        found = container.get(token, _ABSENT)
        if found is _ABSENT:
            raise _DoesNotApply(f"there is no member {show(token)[:200]} on the path; add it first")
        return found
    if is_array(container):
        return container[_index(token, len(container))]
    raise _DoesNotApply(f"the path leads into {show(container)[:200]}, which is no object or list")


def _index(token: str, length: int) -> int:
    """The position that the token names in a list of which `length` positions may be named."""
    if not _INDEX.fullmatch(token):
        raise _DoesNotApply(f"{show(token)[:200]} is no index of a list")
    index = int(token)
    if not -length <= index < length:
        raise _DoesNotApply(f"the index {index} is outside the list")
    return index + length if index < 0 else index
