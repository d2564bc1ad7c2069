"""The repository's own Python files as syntax trees, for the tests that look at source (style, contracts)."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Source:
    """One Python file: its path below the repository (with `/`) and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree; a file that does not parse raises SyntaxError with its path."""
        return ast.parse(self.text, self.path)

    @cached_property
    def module(self) -> str:
        """The dotted name that imports the file: `src/steersman/api/gc.py` is `steersman.api.gc`."""
        parts = self.path.removeprefix("src/").removesuffix(".py").split("/")
        if parts[-1] == "__init__":
            parts.pop()
        return ".".join(parts)

    @property
    def package(self) -> str:
        """What a leading dot of a relative import stands for."""
        if self.path.endswith("/__init__.py"):
            return self.module
        return self.module.rpartition(".")[0]

    def is_in(self, *packages: str) -> bool:
        """True for the modules of the given packages of steersman, as in `is_in("kernel", "sim.record")`."""
        names = [f"steersman.{package}" for package in packages]
        return any(self.module == name or self.module.startswith(name + ".") for name in names)

    def imports(self) -> Iterator[tuple[int, str]]:
        """(line, dotted name) of everything imported, anywhere in the file.

        `from a import b` gives `a` and `a.b`, since b may be a module; relative names come out absolute.
        """
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield node.lineno, alias.name
            elif isinstance(node, ast.ImportFrom):
                origin = self._origin(node)
                yield node.lineno, origin
                for alias in node.names:
                    yield node.lineno, f"{origin}.{alias.name}"

    def _origin(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.package.split(".")
        parts = parts[: len(parts) - (node.level - 1)]
        return ".".join([*parts, node.module] if node.module else parts)


def read_sources(*folders: str) -> list[Source]:
    """Every Python file below the given folders of the repository, in the order of their paths."""
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return [Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]
