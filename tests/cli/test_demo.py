"""`steersman demo`: an example that is broken is one line."""

import shutil

import pytest
import typer

from steersman.cli.demo import demo
from tests.source import ROOT


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def test_naive_over_creates(:\n", "over_creation.py, line 1: "),
        ("def test_other():\n    pass\n", "no function 'test_naive_over_creates'"),
        ("def test_naive_over_creates():\n    pass\n", "over_creation.py::test_naive_over_creates checked nothing"),
    ],
)
def test_a_broken_example_is_one_line(tmp_path, monkeypatch, capsys, text, said):
    monkeypatch.setattr("steersman.cli.kubectl.find_kubectl", lambda: "kubectl")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "examples" / "check" / "over_creation.py").write_text(text)
    with pytest.raises(typer.Exit) as exit_:
        demo(tmp_path / "examples")
    err = capsys.readouterr().err
    assert exit_.value.exit_code == 1 and len(err.splitlines()) == 1
    assert err.startswith("steersman demo: ") and said in err
