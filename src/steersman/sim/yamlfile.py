"""YAML files that people give, read with one clear line for whatever is wrong with them."""

from __future__ import annotations

import os
from typing import Any


class YamlFileError(ValueError):
    """A file that cannot be read as YAML; the text names it, the line and the remedy."""


def read_documents(path: str | os.PathLike[str], max_bytes: int, remedy: str) -> list[Any]:
    """The documents of a YAML (or JSON) file, empty ones left out. `remedy`: what to give instead. Raises
    `YamlFileError`."""
    import yaml

    where = os.fspath(path)
    try:
        with open(path, "rb") as file:
            raw = file.read(max_bytes + 1)
        if len(raw) > max_bytes:
            raise YamlFileError(f"{where}: more than {max_bytes >> 20} MiB; {remedy}")
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise YamlFileError(f"{where}: not readable as YAML: byte {error.start} is not UTF-8; {remedy}") from None
    except OSError as error:
        raise YamlFileError(f"{where}: cannot read it: {error.strerror}; {remedy}") from None
    except ValueError as error:  # a null byte in the path
        raise error if isinstance(error, YamlFileError) else YamlFileError(f"{where!r}: {error}; {remedy}") from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return [document for document in yaml.load_all(text, loader) if document is not None]
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # ValueError: a date that is none
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark is not None else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it is nested too deep"
        raise YamlFileError(f"{where}:{line} not readable as YAML: {problem}; {remedy}") from None
