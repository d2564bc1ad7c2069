"""Tests made of counterexamples: a pytest file that takes the steps again and asks that nothing is violated.

A mended controller does other things than the one the schedule was found with. So the test takes the steps that are
still possible, in their order, and then lets the run come to rest (`steersman.testing.replay`). The check itself looks
at every run; the test is for the one that was found, in milliseconds.
"""

from __future__ import annotations

import os
from pathlib import Path

from steersman.check import saved
from steersman.check.report.checked import Checked
from steersman.check.verdict import Violation


def export(one: Checked, violation: Violation, folder: Path) -> tuple[str, str]:
    """(name, text) of the test of a violation, for a file in `folder`."""
    name = f"test_{_words(one.name.removeprefix('test_').removeprefix('scenario_'))}_{_words(violation.name.lower())}"
    file = Path(one.file)
    near = os.path.relpath(file.resolve(), folder.resolve())
    target = f"{_quoted(Path(near).as_posix())}::{one.name}"
    steps = "\n".join(line.rstrip() for line in violation.explanation.splitlines())
    text = f'''"""{_prose(f"{one.verdict.title}: {violation.title}")}

{_prose(violation.message)}

{_prose(steps)}

Found by `steersman check {_prose(f"{file.name}::{one.name}")}`, which made this test.
"""

from pathlib import Path

from steersman.testing import replay

TARGET = Path(__file__).parent / "{target}"
SCHEDULE = """\\
{_quoted(saved.text_of(violation, one.verdict, f"{file.name}::{one.name}"))}"""


def {name}() -> None:
    replay(TARGET, SCHEDULE)
'''
    return f"{name}.py", text


def _words(text: str) -> str:
    return "_".join("".join([char if char.isalnum() and char.isascii() else " " for char in text]).split())


def _quoted(text: str) -> str:
    """As it stands between quotation marks in Python."""
    return _plain(text).replace('"', '\\"')


def _prose(text: str) -> str:
    """As it stands in a docstring: nothing in it ends that, or means anything but itself."""
    return _plain(text).replace('"""', "'''").rstrip('"')


def _plain(text: str) -> str:
    """Without what no source may hold: NUL above all, other control characters and half surrogates."""
    return "".join([char if char == "\n" or char.isprintable() else _escape(ord(char)) for char in _doubled(text)])


def _doubled(text: str) -> str:
    return text.replace("\\", "\\\\")


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
