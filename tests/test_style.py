"""The style ratchet: limits that the code holds today may be tightened, never loosened.

After TigerBeetle's `tidy` (a lint that is a test). Each check is a pure function from source files to
`{what: size}`, so that a test can feed it a bad snippet and see it fail.
"""

import ast
import tomllib
from collections.abc import Iterable, Iterator

import pytest

from tests.source import ROOT, Source, read_sources

FUNCTION_LINES = 70  # one screen: a function is read without scrolling
FILE_LINES = 500  # one noun a file; a longer one holds two
CODE = ("src", "tests", "scripts", "examples", ".ci")

# What was over a limit when it was added, by check: {what: its size today}. Only ever shrink this: an entry
# must give today's size exactly, so a change for the better lowers it, and one no longer needed must go.
EXCEPTIONS: dict[str, dict[str, int]] = {
    "function lines": {},
    "file lines": {},
    "docstrings": {},
    "dead files": {},
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def measure_functions(sources: Iterable[Source]) -> dict[str, int]:
    """Lines of every function, from `def` to its last line; nested ones count on their own too."""
    return {
        f"{source.path}:{name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for source in sources
        for name, node in _functions(source.tree, "")
    }


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}.{child.name}".lstrip(".")
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name, child
        yield from _functions(child, name)


def measure_files(sources: Iterable[Source]) -> dict[str, int]:
    """Lines of every file."""
    return {source.path: len(source.text.splitlines()) for source in sources}


def find_undocumented(sources: Iterable[Source]) -> dict[str, int]:
    """Public modules, and their public classes and functions, without a docstring; each counts 1.

    An `__init__.py` without any code only marks its folder as a package and needs none.
    """
    found = {}
    for source in sources:
        if any(part.startswith("_") and part != "__main__" for part in source.module.split(".")):
            continue
        marks_only = source.path.endswith("/__init__.py") and not source.tree.body
        if not ast.get_docstring(source.tree) and not marks_only:
            found[source.path] = 1
        for node in source.tree.body:
            if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
                continue
            if not ast.get_docstring(node) and not _is_overload(node):
                found[f"{source.path}:{node.name}"] = 1
    return found


def _is_overload(node: Function | ast.ClassDef) -> bool:
    return any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)


def find_dead_files(sources: Iterable[Source], entry_points: Iterable[str]) -> dict[str, int]:
    """Modules of src that nobody imports and that are no entry point; each counts 1.

    A string in src that is exactly a module, or `module:attribute`, counts as an import (lazy imports).
    Entry points as well: `__init__.py`, `__main__.py`, and the verbs of the command line (`steersman.cli.*`).
    """
    sources = list(sources)
    used = set(entry_points)
    for source in sources:
        names = {name for _, name in source.imports()}
        if source.path.startswith("src/"):
            names |= {
                node.value.partition(":")[0]
                for node in ast.walk(source.tree)
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            }
        used |= names - {source.module}
    return {
        source.path: 1
        for source in sources
        if source.path.startswith("src/")
        and not source.path.endswith(("/__init__.py", "/__main__.py"))
        and not source.is_in("cli")
        and source.module not in used
    }


def read_entry_points() -> list[str]:
    """The modules that pyproject.toml names as scripts and plugins."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
    return [target.partition(":")[0] for group in groups for target in group.values()]


def complaints(measured: dict[str, int], limit: int, exceptions: dict[str, int]) -> list[str]:
    """What breaks the ratchet: sizes over `limit` without an exception, and exceptions that are not exact."""
    over = {what: size for what, size in measured.items() if size > limit}
    told = []
    for what, size in sorted(over.items()):
        if what not in exceptions:
            told.append(f"{what}: {size}, at most {limit}")
        elif size > exceptions[what]:
            told.append(f"{what}: {size}, and its exception says {exceptions[what]}: it may not grow")
        elif size < exceptions[what]:
            told.append(f"{what}: {size} now; lower its exception from {exceptions[what]}")
    unneeded = sorted(exceptions.keys() - over.keys())
    told += [f"{what}: needs no exception any more; delete it" for what in unneeded]
    return told


def assert_holds(check: str, measured: dict[str, int], limit: int) -> None:
    """Fail with one line per complaint."""
    told = complaints(measured, limit, EXCEPTIONS[check])
    assert not told, f"{check}:\n  " + "\n  ".join(told)


# The repository.


def test_functions_are_short():
    assert_holds("function lines", measure_functions(read_sources(*CODE)), FUNCTION_LINES)


def test_files_are_short():
    assert_holds("file lines", measure_files(read_sources(*CODE)), FILE_LINES)


def test_public_names_have_docstrings():
    assert_holds("docstrings", find_undocumented(read_sources("src")), 0)


def test_no_file_is_dead():
    assert_holds("dead files", find_dead_files(read_sources(*CODE), read_entry_points()), 0)


def test_exceptions_name_known_checks():
    assert set(EXCEPTIONS) == {"function lines", "file lines", "docstrings", "dead files"}


# Each check can fail.


def a_file(text: str, path: str = "src/steersman/api/bad.py") -> Source:
    return Source(path, text)


def a_function(lines: int, head: str = "def f():") -> str:
    return "\n".join([head, *["    pass"] * (lines - 1)])


@pytest.mark.parametrize("head", ["def f():", "async def f():", "@cache\ndef f():"])
@pytest.mark.parametrize(("lines", "fails"), [(70, False), (71, True)])
def test_a_long_function_is_found(head, lines, fails):
    measured = measure_functions([a_file(a_function(lines, head))])
    assert measured == {"src/steersman/api/bad.py:f": lines}
    assert bool(complaints(measured, FUNCTION_LINES, {})) is fails


def test_methods_and_inner_functions_are_measured_by_their_full_name():
    text = "class A:\n    if True:\n        def m(self):\n            def inner():\n                pass\n"
    assert measure_functions([a_file(text)]) == {
        "src/steersman/api/bad.py:A.m": 3,
        "src/steersman/api/bad.py:A.m.inner": 2,
    }


@pytest.mark.parametrize(("lines", "fails"), [(500, False), (501, True)])
def test_a_long_file_is_found(lines, fails):
    measured = measure_files([a_file("x = 1\n" * lines)])
    assert bool(complaints(measured, FILE_LINES, {})) is fails


@pytest.mark.parametrize(
    ("text", "path", "found"),
    [
        ("x = 1", "src/steersman/api/bad.py", ["src/steersman/api/bad.py"]),
        ('"""D."""\ndef f(): ...', "src/steersman/api/bad.py", ["src/steersman/api/bad.py:f"]),
        ('"""D."""\nasync def f(): ...', "src/steersman/api/bad.py", ["src/steersman/api/bad.py:f"]),
        ('"""D."""\nclass C: ...', "src/steersman/api/bad.py", ["src/steersman/api/bad.py:C"]),
        ('"""D."""\nclass C:\n    "D."\n    def m(self): ...', "src/steersman/api/bad.py", []),
        ('"""D."""\ndef _f(): ...', "src/steersman/api/bad.py", []),
        ('"""D."""\n@typing.overload\ndef f(): ...', "src/steersman/api/bad.py", []),
        ("def f(): ...", "src/steersman/api/_bad.py", []),
        ("def f(): ...", "src/steersman/_api/bad.py", []),
        ("", "src/steersman/api/bad.py", ["src/steersman/api/bad.py"]),
        ("", "src/steersman/api/__init__.py", []),
        ("x = 1", "src/steersman/api/__init__.py", ["src/steersman/api/__init__.py"]),
        ("", "src/steersman/__main__.py", ["src/steersman/__main__.py"]),
    ],
)
def test_a_missing_docstring_is_found(text, path, found):
    assert list(find_undocumented([a_file(text, path)])) == found


@pytest.mark.parametrize(
    ("importer", "text", "dead"),
    [
        ("src/steersman/api/other.py", "import steersman.api", True),
        ("src/steersman/api/other.py", "from steersman.api.bad import f", False),
        ("src/steersman/api/other.py", "from steersman.api import bad", False),
        ("src/steersman/api/other.py", "from . import bad", False),
        ("src/steersman/api/__init__.py", "from .bad import f", False),
        ("src/steersman/sim/other.py", "from ..api.bad import f", False),
        ("src/steersman/sim/other.py", "from ..bad import f", True),
        ("src/steersman/sim/other.py", "load('steersman.api.bad:f')", False),
        ("tests/sim/test_other.py", "load('steersman.api.bad:f')", True),
        ("tests/sim/test_other.py", "from steersman.api.bad import f", False),
        ("src/steersman/sim/other.py", "def f():\n    import steersman.api.bad", False),
        ("src/steersman/api/bad.py", "import steersman.api.bad", True),
    ],
)
def test_a_dead_file_is_found(importer, text, dead):
    sources = [a_file(""), Source(importer, text)]
    assert ("src/steersman/api/bad.py" in find_dead_files(sources, ["steersman.api.other"])) is dead


@pytest.mark.parametrize("path", ["src/steersman/__main__.py", "src/steersman/cli/run.py", "tests/test_x.py"])
def test_an_entry_point_is_not_dead(path):
    assert find_dead_files([Source(path, "")], []) == {}


def test_entry_points_come_from_the_project_file():
    assert {"steersman.cli", "steersman.testing"} <= set(read_entry_points())


@pytest.mark.parametrize(
    ("size", "exceptions", "told"),
    [
        (71, {}, "f: 71, at most 70"),
        (70, {}, None),
        (90, {"f": 90}, None),
        (91, {"f": 90}, "f: 91, and its exception says 90: it may not grow"),
        (89, {"f": 90}, "f: 89 now; lower its exception from 90"),
        (70, {"f": 90}, "f: needs no exception any more; delete it"),
    ],
)
def test_the_ratchet_only_tightens(size, exceptions, told):
    assert complaints({"f": size}, 70, exceptions) == ([told] if told else [])
