"""The inspector, with keys pressed by Textual's pilot."""

import asyncio
from pathlib import Path

import pytest
import typer
from textual.widgets import OptionList, Static, Tree
from typer.testing import CliRunner

import steersman as sm
from examples.check import over_creation
from steersman.check.inspector.app import Inspector
from steersman.check.inspector.runs import run_called, why
from steersman.check.report import run_file
from steersman.check.report.checked import Checked
from steersman.check.report.saved_run import saved
from steersman.cli.inspect import inspect

EVIL = "[bold]x[/bold] [/nothing] [@click=app.quit]y[/] \x1b[31m\x07 \u202e"


@pytest.fixture(scope="module")
def command():
    session = sm.check.Session()
    session.picturing = True
    sm.check.sessions.append(session)
    try:
        verdict = sm.check(over_creation.scenario(over_creation.NaiveReplicaSet), lag=1)
    finally:
        sm.check.sessions.remove(session)
    return saved([Checked("over_creation.py", "test_it", 1, verdict)])


def driven(command, path, script):
    """Runs the inspector and `script(pilot, app)` in it."""

    async def run():
        app = Inspector(command, path)
        async with app.run_test(size=(160, 45)) as pilot:
            await pilot.pause()
            await script(pilot, app)
            return app

    return asyncio.run(run())


def rows(app):
    steps = app.query_one("#steps", OptionList)
    return [steps.get_option_at_index(at).prompt.plain for at in range(steps.option_count)]


def shown(app, where):
    return str(app.query_one(where, Static).render())


def test_it_opens_on_the_first_violation_and_finds_what_went_wrong(command, tmp_path):
    async def script(pilot, app):
        run = command.checks[0].violations[0].run
        assert len(rows(app)) == len(run.steps)
        assert "never more pods than replicas" in shown(app, "#said")
        await pilot.press("n")
        stale = next(step for step in run.steps if step.stale)
        assert shown(app, "#step").startswith(f"{stale.number}. ")
        assert "rests on" in shown(app, "#step") and "(missed)" in shown(app, "#step")
        await pilot.press("w")
        assert [int(row[1:7]) for row in rows(app)] == sorted(why(run, stale.number))
        assert f"why step {stale.number}: " in shown(app, "#said")
        await pilot.press("a")
        assert len(rows(app)) == len(run.steps)

    driven(command, tmp_path / "a.run", script)


def node_of(tree, name):
    work = [tree.root]
    while work:
        node = work.pop(0)
        if node.data == (0, name):
            return node
        work += node.children
    raise AssertionError(f"no line for {name}")


def test_from_a_state_to_the_way_there_and_what_it_changed(command, tmp_path):
    check = command.checks[0]
    end = next(at for at, spot in enumerate(check.picture.spots) if spot.mark == "end")

    async def script(pilot, app):
        tree = app.query_one("#what", Tree)
        node_of(tree, "states").expand()
        await pilot.pause()
        tree.select_node(node_of(tree, f"state {end}"))
        tree.action_select_cursor()
        await pilot.pause()
        assert len(rows(app)) == check.picture.spots[end].depth
        created = next(step for step in app.run_shown.steps if step.changes and step.changes[0].sign == "+")
        app.query_one("#steps", OptionList).highlighted = created.number - 1
        await pilot.pause()
        assert f"+ {created.changes[0].name}" in shown(app, "#step") and '"apiVersion"' in shown(app, "#step")

    driven(command, tmp_path / "a.run", script)


def test_two_ends_side_by_side(command, tmp_path):
    async def script(pilot, app):
        tree = app.query_one("#what", Tree)
        tree.select_node(node_of(tree, "compare 1 2"))
        tree.action_select_cursor()
        await pilot.pause()
        assert "part at step" in shown(app, "#said")
        assert "~ ReplicaSet default/web" in shown(app, "#step") and "status.replicas" in shown(app, "#step")

    driven(command, tmp_path / "a.run", script)


def test_it_is_saved_and_opens_again_where_it_was_left(command, tmp_path):
    path = tmp_path / "a.run"

    async def leave(pilot, app):
        app.show_run(0, "end 2")
        await pilot.press("down", "down", "m", "s")

    driven(command, path, leave)
    again = run_file.read(path)
    assert (again.place.run, again.place.step) == ("end 2", 3) and again.marks == [again.place]

    async def back(pilot, app):
        assert app.name_of_run == "end 2" and shown(app, "#step").startswith("3. ")
        assert rows(app)[2].startswith("* ")
        await pilot.press("m")
        assert not app.command.marks

    driven(again, path, back)


def test_a_disk_that_does_not_take_it_is_told(command, tmp_path):
    (tmp_path / "file").write_text("")

    async def script(pilot, app):
        await pilot.press("s")
        await pilot.pause()
        assert any("not saved" in note.message for note in app._notifications)

    driven(command, tmp_path / "file" / "a.run", script)


def test_names_have_no_effect(run, tmp_path):
    text = f"""
EVIL = {EVIL!r}

def scenario_evil():
    w = sm.Scenario(EVIL)
    a = w.apply(OBJECT)
    w.run(Writer)
    w.user(EVIL, lambda c: c.patch(a, {{"data": {{"evil": EVIL}}}}))
    w.always(EVIL, lambda s: not s[a].data.evil)
    return w
"""
    run(text, "--save", "a.run")
    command = run_file.read(tmp_path / "a.run")

    async def script(pilot, app):
        user = next(step.number for step in app.run_shown.steps if step.mark == "user")
        app.query_one("#steps", OptionList).highlighted = user - 1
        await pilot.pause()
        assert "[/nothing]" in rows(app)[user - 1]
        for where in ("#said", "#step"):
            assert "[bold]x[/bold] [/nothing] [@click=app.quit]y[/]" in shown(app, where)
            assert not {"\x1b", "\x07", "\u202e"} & set(shown(app, where))
        assert "\\x1b" in shown(app, "#said")

    driven(command, tmp_path / "a.run", script)


@pytest.mark.parametrize("name", ["", "end 0", "end 9", "end x", "violation 3", "state 999", "state -1", "state", "²"])
def test_a_run_that_is_not_there(command, name):
    assert run_called(command.checks[0], name) is None


@pytest.fixture
def inspects(tmp_path):
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(inspect)
    return lambda path: CliRunner().invoke(app, [str(path)])


def test_what_will_not_do_is_one_line(inspects, command, tmp_path, monkeypatch):
    good = tmp_path / "a.run"
    run_file.save(command, good)
    bad = tmp_path / "b.run"
    bad.write_text("steersman")
    for path, why_not in ((good, "needs a terminal"), (bad, "no JSON"), (Path("nothing.run"), "No such file")):
        result = inspects(path)
        assert result.exit_code == 2 and result.stderr.startswith("steersman inspect: ") and why_not in result.stderr
        assert len(result.stderr.splitlines()) == 1
    monkeypatch.setitem(__import__("sys").modules, "steersman.check.inspector.app", None)
    monkeypatch.delitem(__import__("sys").modules, "steersman.check.inspector.app")
    monkeypatch.setitem(__import__("sys").modules, "textual.app", None)
    result = inspects(good)
    assert result.exit_code == 2 and "pip install 'steersman[inspect]'" in result.stderr
