"""What two servers may not agree on, replaced by what they must agree on.

- uids and generated names: a number in the order in which they appear;
- resourceVersions of objects: their rank within the sequence, since each server counts other things as well; those of
  lists and bookmarks: `~` and the rank of the newest object version that they include;
- times of today: `<time>` and `<microtime>`; ages, addresses, ports and tokens that a server chooses: a word;
- an object that a message quotes in whole: `<object>`;
- bookmarks that only the clock asked for are left out;
- managedFields and the conflicts of an apply: sorted, since entries of one second have no order of their own.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Final

Json = Any

UID: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
TIME: Final = re.compile(r"\b202[6-9]-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
JWT: Final = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+")
VERSIONS: Final = re.compile(r'((?:[Rr]esource ?[Vv]ersion[^:]*|current): ?"?|in record \()(\d+)')
ADDRESS: Final = re.compile(r"\b10\.96\.\d+\.\d+\b")
AGE: Final = re.compile(r"(?:\d+[ydhms])+")
AGO: Final = re.compile(r"\((?:\d+[ydhms])+ ago\)")
AGED: Final = ("Age", "Last Schedule", "Duration", "Last Seen", "First Seen")
"""Columns of a table that tell how long ago something was."""
CONFLICTS: Final = re.compile(r"Apply failed with \d+ conflict")
ECHO: Final = re.compile(r'Invalid value: "\{\\".*\}": ', re.S)
HEADERS: Final = ("content-type", "warning", "retry-after", "location", "www-authenticate", "allow")
SUFFIX: Final = "[bcdfghjklmnpqrstvwxz2456789]{5}"
CHOSEN: Final = {"nodePort": "<port>", "healthCheckNodePort": "<port>"}


def normal(answers: list[Json]) -> list[Json]:
    """The answers of one sequence in a form that compares."""
    return _Normal(answers).answers()


class _Normal:
    def __init__(self, answers: list[Json]) -> None:
        self.raw = answers
        self.uids: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.ranks: list[int] = sorted(set(self._versions(answers)))
        self._collect_names(answers)
        self._generated = re.compile("|".join(map(re.escape, sorted(self.names, key=len, reverse=True))) or "(?!)")

    def answers(self) -> list[Json]:
        return [self._value(answer, "") for answer in self.raw]

    def _versions(self, value: Json) -> Iterator[int]:
        for meta in _metas(value):
            version = meta.get("resourceVersion")
            if "uid" in meta and isinstance(version, str) and version.isdigit():
                yield int(version)

    def _collect_names(self, value: Json) -> None:
        for meta in _metas(value):
            prefix, name = meta.get("generateName"), meta.get("name")
            if prefix and isinstance(name, str) and re.fullmatch(re.escape(prefix) + SUFFIX, name):
                self.names.setdefault(name, f"{prefix}<{len(self.names) + 1}>")

    def _value(self, value: Json, key: str) -> Json:
        if isinstance(value, str):
            return self._text(value, key)
        if isinstance(value, list):
            done = [self._value(item, key) for item in value if key != "events" or not _tick(item)]
            return sorted(done, key=_order) if key == "managedFields" or _conflicts(done) else done
        if isinstance(value, dict):
            done = {name: self._value(value[name], name) for name in sorted(value)}
            self._meta(value, done)
            if CONFLICTS.match(str(done.get("message"))):
                done["message"] = "\n".join(sorted(done["message"].splitlines()))
            if value.get("kind") == "Table":
                _ages(done)
            return done
        if key in CHOSEN and isinstance(value, int):
            return CHOSEN[key]
        return value

    def _meta(self, value: Json, done: Json) -> None:
        """A resourceVersion as its rank."""
        version = value.get("resourceVersion")
        if isinstance(version, str) and version.isdigit():
            rank = bisect_right(self.ranks, int(version))
            done["resourceVersion"] = str(rank) if "uid" in value else f"~{rank}"
        if isinstance(value.get("continue"), str) and value["continue"]:
            done["continue"] = "<continue>"

    def _text(self, text: str, key: str) -> str:
        if key == "serverAddress":
            return "<address>"
        text = UID.sub(lambda found: self.uids.setdefault(found[0], f"<uid {len(self.uids) + 1}>"), text)
        text = TIME.sub(lambda found: "<microtime>" if found[1] else "<time>", text)
        text = JWT.sub("<jwt>", text)
        text = ADDRESS.sub("<ip>", text)
        text = ECHO.sub('Invalid value: "<object>": ', text)
        text = VERSIONS.sub(r"\1<version>", text)
        return self._generated.sub(lambda found: self.names[found[0]], text)


def _conflicts(causes: list[Json]) -> bool:
    """Whether these are the conflicts of an apply, which come in the order of a map; so does the message of them."""
    return bool(causes) and all(isinstance(c, dict) and c.get("reason") == "FieldManagerConflict" for c in causes)


def _tick(event: Json) -> bool:
    """Whether an event is a bookmark that says nothing but how far the watch is."""
    if event.get("type") != "BOOKMARK":
        return False
    kept = event["object"].get("rows", [{}])[0].get("object") or event["object"]
    return not (kept.get("metadata") or {}).get("annotations")


def _metas(value: Json) -> Iterator[Json]:
    """Every `metadata` map anywhere in a value, in one order whatever order the maps are in."""
    if isinstance(value, list):
        for item in value:
            yield from _metas(item)
    elif isinstance(value, dict):
        for key in sorted(value):
            if key == "metadata" and isinstance(value[key], dict):
                yield value[key]
            yield from _metas(value[key])


def _order(entry: Json) -> str:
    return json.dumps(entry, sort_keys=True)


def _ages(table: Json) -> None:
    """Cells of ages in a Table; what its columns are for is told in each server's own words."""
    columns = table.get("columnDefinitions") or []
    for column in columns:
        column.pop("description", None)
    for row in table.get("rows") or []:
        for index, cell in enumerate(row["cells"]):
            timed = index < len(columns) and columns[index]["name"] in AGED
            if (timed or not columns) and isinstance(cell, str) and AGE.fullmatch(cell):
                row["cells"][index] = "<age>"
            elif isinstance(cell, str):  # a pod's restarts
                row["cells"][index] = AGO.sub("(<age> ago)", cell)
