"""`steersman check`, run in this process."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from steersman.cli.check import check
from tests.check.command import HEAD


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs `steersman check` on a file of the given text (or on arguments alone): (exit code, out, err)."""
    monkeypatch.chdir(tmp_path)
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(check)

    def runs(text=None, *arguments, name=""):
        given = list(arguments)
        if text is not None:
            Path("scenarios.py").write_text(HEAD + text)
            given.insert(0, "scenarios.py" + name)
        result = CliRunner().invoke(app, [str(argument) for argument in given])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return runs
