"""A trace of what a control plane's journal holds, simulated again."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from steersman import journal
from steersman.api.kinds import Kinds
from steersman.api.stored import dump
from steersman.cli.record import record as record_command
from steersman.controllers.builtin import builtin
from steersman.journal import NO_SUMS, Commit, JournalError
from steersman.kernel.effect import MICRO
from steersman.sim import TraceError, simulate
from steersman.sim.cluster import given
from steersman.sim.drive import Simulation, system_of, world_of
from steersman.sim.lives import Lives
from steersman.sim.record import DEFAULT_CONFIG, ConfigError, load_config, open_for_reading, record
from steersman.sim.script import script_of
from steersman.trace import sktrace
from steersman.trace.tracked import Tracked
from tests.sim.traces import START, nodes, scaling


class Journaled(Simulation):
    """A control plane that keeps a journal, as `run` does."""

    journal: journal.Journal
    epoch: int

    def _done(self) -> None:
        commits = []
        for event in self.world.events:
            verb = {"ADDED": "create", "MODIFIED": "update", "DELETED": "delete"}[event.type]
            whole = dump(event.obj)
            commits.append(Commit(event.rev, event.key, verb, "test", event.obj.uid, whole, self.world.now, NO_SUMS))
        self.journal.append(self.epoch, self.journal.head(), commits)
        super()._done()


@pytest.fixture
def url(tmp_path):
    """The journal of a cluster in which the `scaling` trace happened."""
    trace, kinds = scaling(), Kinds.builtin()
    script = script_of(trace, kinds)
    world = world_of(system_of(script, Lives(trace), builtin(), 0, kinds=kinds), given(nodes(1)), trace.start * MICRO)
    simulation = Journaled(world, script)
    simulation.journal = journal.open(f"sqlite:{tmp_path / 'journal.db'}")
    simulation.epoch = simulation.journal.acquire("test")
    placed = [
        Commit(number, obj.key, "create", "test", obj.uid, dump(obj), world.now, NO_SUMS)
        for number, obj in enumerate(sorted(world.store.objects(), key=lambda obj: obj.rv), start=1)
    ]
    world.store.rev = len(placed)  # a journal's revisions have no gaps; nodes took two writes each
    simulation.journal.append(simulation.epoch, simulation.journal.head(), placed)
    simulation.run()
    simulation.journal.close()
    return f"sqlite:{tmp_path / 'journal.db'}"


def changes(trace):
    """(seconds after the start, applied, deleted) of every event but the state at the start."""
    return [
        (
            event.ts - START,
            [(obj["kind"], obj["metadata"]["name"], obj["spec"].get("replicas")) for obj in event.applied],
            [obj["metadata"]["name"] for obj in event.deleted],
        )
        for event in trace.events
        if event.applied or event.deleted
    ]


def test_what_people_did_is_recorded_and_what_came_of_it_is_not(url):
    with_journal = open_for_reading(url)
    trace = record(with_journal)
    assert changes(trace) == [
        (0, [("Deployment", "web", 2), ("Pod", "job", None)], []),
        (30, [("Deployment", "web", 6)], []),
        (90, [("Deployment", "web", 1)], []),
        (150, [], ["web"]),
    ]
    ((owner, by_hash),) = trace.lifecycles.items()
    assert owner == ("v1.Pod", "shop/job")
    ((life,),) = by_hash.values()
    assert life.seconds == 20


def test_what_was_recorded_is_simulated_alike(url, tmp_path):
    target = tmp_path / "out.sktrace"
    sktrace.write(target, record(open_for_reading(url)))
    again = simulate(target, nodes(1))
    first = simulate(scaling(), nodes(1))
    assert not again.refused and not again.faults
    assert again.pods == first.pods
    assert [round(share.mean, 2) for share in again.shares] == [round(share.mean, 2) for share in first.shares]


def test_a_window_and_other_kinds(url):
    trace = record(open_for_reading(url), {"apps/v1.Deployment": Tracked()}, start=START + 60, end=START + 100)
    assert changes(trace) == [(60, [("Deployment", "web", 6)], []), (90, [("Deployment", "web", 1)], [])]
    assert not trace.lifecycles
    with pytest.raises(TraceError, match="no time from 2023-11-14T22:13:20Z to before 2023-11-14T22:13:20Z"):
        record(open_for_reading(url), start=START, end=START)
    with pytest.raises(TraceError, match=r"no time from 2030-.*; what is recorded ends at 2023-11-14T22:1"):
        record(open_for_reading(url), start=1_893_456_000)
    with pytest.raises(TraceError, match="no time from -1 to before 2023"):
        record(open_for_reading(url), start=-1, end=START)


def test_a_journal_without_anything_to_record_is_refused(tmp_path):
    where = f"sqlite:{tmp_path / 'empty.db'}"
    journal.open(where).close()
    with pytest.raises(TraceError, match="nothing of a tracked kind"):
        record(open_for_reading(where))


def test_the_command_writes_a_trace_and_says_what_is_in_it(url, tmp_path):
    import typer

    app = typer.Typer()
    app.command()(record_command)
    target = tmp_path / "out.sktrace"
    done = CliRunner().invoke(app, ["--store", url, "-o", str(target), "--end", "2023-11-14T22:15:20Z"])
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{target}: 4 events over 1m30s, 2 objects, 1 life of pods\n"
    assert sktrace.read(target).end == START + 90
    nothing = CliRunner().invoke(app, ["--store", url, "-o", str(target), "--exclude-namespace", "shop"])
    assert nothing.exit_code == 0 and "0 objects" in nothing.stdout
    assert "warning: no object is in the recording" in nothing.stderr and "warning" not in done.stderr


def test_reading_needs_a_journal_that_is_there(tmp_path):
    with pytest.raises(JournalError, match="there is no such file"):
        open_for_reading(f"sqlite:{tmp_path}/none.db")
    assert not list(tmp_path.iterdir())
    with pytest.raises(JournalError, match="use sqlite:PATH"):
        open_for_reading("postgresql://x")


def test_a_configuration_is_simkubes(tmp_path):
    path = tmp_path / "tracer.yaml"
    path.write_text(
        "trackedObjects:\n"
        "  apps/v1.Deployment: {}\n"
        "  batch.volcano.sh/v1alpha1.Job: {podSpecTemplatePaths: [/spec/tasks/*/template], trackLifecycle: true}\n"
    )
    assert load_config(path) == {
        "apps/v1.Deployment": Tracked(),
        "batch.volcano.sh/v1alpha1.Job": Tracked(paths=("/spec/tasks/*/template",), lifecycle=True),
    }
    assert DEFAULT_CONFIG["v1.Pod"].skip_owned


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "trackedObjects is missing"),
        ("trackedObjects: []", "trackedObjects is missing"),
        ("trackedObjects: {Deployment: {}}", "does not name a kind"),
        ("trackedObjects: {v1.Pod: {track: true}}", "trackedObjects[v1.Pod]: unknown option 'track'"),
        ("trackedObjects: {v1.Pod: {skipOwned: 1}}", "skipOwned must be true or false"),
        ("a: b: c", "line 1: not readable as YAML"),
    ],
)
def test_a_wrong_configuration_gives_one_clear_line(tmp_path, text, says):
    path = tmp_path / "tracer.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value).startswith(str(path)) and says in str(caught.value)
