"""Files of settings that look like objects of the API: YAML or JSON, read strictly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steersman.api.errors import ApiError
from steersman.serve.files import FileError
from steersman.serve.yaml_body import read_yaml


def document(
    data: bytes, name: str, versions: Sequence[str], kind: str, fields: Mapping[str, type]
) -> Mapping[str, Any]:
    """The one object of a file called `name`, of one of these versions. Raises `FileError`, which names the field."""
    try:
        value, duplicates = read_yaml(data)
    except ApiError as error:
        raise FileError(f"{name}: {error.message}") from None
    if duplicates:
        raise FileError(f"{name}: {duplicates[0]} is there twice; write it once")
    given = part(value, fields, name)
    if given.get("apiVersion") not in versions or given.get("kind") != kind:
        raise FileError(f"{name}: write apiVersion: {versions[0]} and kind: {kind}")
    return given


def part(value: Any, fields: Mapping[str, type], where: str) -> Mapping[str, Any]:
    """An object with these fields and their types, those that are null left out. Raises `FileError`."""
    if not isinstance(value, dict):
        raise FileError(f"{where} must be an object")
    for name, item in value.items():
        if name not in fields:
            raise FileError(f"{where}: there is no field {name!r}; there are {', '.join(fields)}")
        if item is not None and type(item) is not fields[name]:
            raise FileError(f"{where}.{name} must be a {fields[name].__name__}")
    return {name: item for name, item in value.items() if item is not None}


def texts(given: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    """A list of texts, empty where there is none. Raises `FileError`."""
    found = given.get(name) or ()
    if not all(isinstance(text, str) for text in found):
        raise FileError(f"{where}.{name} must be a list of texts")
    return tuple(found)
