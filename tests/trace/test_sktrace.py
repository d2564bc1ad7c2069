"""The file format: round trips, refusals with a place and a remedy, and files written whole or not at all."""

import copy
import os
import subprocess
import sys
import tracemalloc

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.trace import limits, sktrace
from steersman.trace.gvk import GVK
from steersman.trace.podlife import PodLife
from steersman.trace.recording import Trace, TraceError, TraceEvent
from steersman.trace.tracked import Tracked
from tests.trace.strategies import traces

REAL = ("bare-pods", "cronjob", "dsb-scaling")

OBJECT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"annotations": {}, "name": "web", "namespace": "shop"},
    "spec": {"replicas": 2},
}
DOCUMENT = {
    "version": 2,
    "config": {"trackedObjects": {"apps/v1.Deployment": {"trackLifecycle": True}}},
    "events": [
        {"ts": 100, "applied_objs": [OBJECT], "deleted_objs": []},
        {"ts": 107, "applied_objs": [], "deleted_objs": [OBJECT]},
    ],
    "index": {"apps/v1.Deployment": {"shop/web": 17}},
    "pod_lifecycles": {("apps/v1.Deployment", "shop/web"): {5: [{"Finished": [101, 105]}, "Empty"]}},
}


def broken(change):
    """The bytes of DOCUMENT after `change(document)`, which may return a document of its own."""
    document = copy.deepcopy(DOCUMENT)
    other = change(document)
    return msgpack.packb(document if other is None else other)


def refusal(raw):
    with pytest.raises(TraceError) as caught:
        sktrace.loads(raw, "x.sktrace")
    text = str(caught.value)
    assert text.startswith("x.sktrace: ")
    assert caught.value.remedy in text and len(text) < 2000
    return caught.value


def test_a_small_trace():
    trace = sktrace.loads(msgpack.packb(DOCUMENT))
    assert trace == Trace(
        version=2,
        config={"apps/v1.Deployment": Tracked(lifecycle=True)},
        events=(TraceEvent(100, (OBJECT,)), TraceEvent(107, (), (OBJECT,))),
        index={"apps/v1.Deployment": {"shop/web": 17}},
        lifecycles={("apps/v1.Deployment", "shop/web"): {5: (PodLife(101, 105), PodLife())}},
    )
    assert (trace.start, trace.end) == (100, 107)
    assert sktrace.dumps(trace) == msgpack.packb(DOCUMENT)
    assert (Trace().start, Trace().end) == (None, None)


def test_the_deprecated_singular_path_is_read():
    def change(d):
        d["config"]["trackedObjects"] = {"x/v1.Y": {"podSpecTemplatePath": "/spec/t"}}

    assert sktrace.loads(broken(change)).config == {"x/v1.Y": Tracked(paths=("/spec/t",))}


def test_template_paths():
    deployment, custom = (GVK.parse(k) for k in ("apps/v1.Deployment", "x/v1.Y"))
    assert Tracked().template_paths(deployment) == ("/spec/template",)
    assert Tracked().template_paths(custom) == ()
    assert Tracked(paths=("/a",)).template_paths(custom) == ("/a",)


@pytest.mark.parametrize("name", REAL)
def test_real_traces_come_back_byte_for_byte(real_inputs, name):
    path = real_inputs / f"{name}.sktrace"
    trace = sktrace.read(path)
    assert sktrace.dumps(trace) == path.read_bytes()
    facts = {"bare-pods": (4, 162, 4), "cronjob": (3, 205, 3), "dsb-scaling": (19, 1134, 0)}
    lives = sum(len(v) for by_hash in trace.lifecycles.values() for v in by_hash.values())
    assert (len(trace.events), trace.end - trace.start, lives) == facts[name]


@settings(max_examples=80, deadline=None)
@given(traces())
def test_generated_traces_come_back(trace):
    raw = sktrace.dumps(trace)
    again = sktrace.loads(raw)
    assert again == trace
    assert sktrace.dumps(again) == raw


# --- refusals -----------------------------------------------------------------------------------------


def at(place, value):
    """A change that sets one place of the document, given as a list of steps."""

    def change(document):
        holder = document
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = value

    return change


def without(*place):
    def change(document):
        holder = document
        for step in place[:-1]:
            holder = holder[step]
        del holder[place[-1]]

    return change


FIRST = ["events", 0, "applied_objs", 0]
WEB = "events[0].applied_objs[0] (apps/v1.Deployment shop/web)"
LIVES = {("v1.Pod", "a/b"): {1: [{"Running": "now"}]}}


@pytest.mark.parametrize(
    ("change", "place", "problem"),
    [
        (without("version"), "", "version is missing"),
        (at(["version"], 3), "version", "unsupported version 3"),
        (at(["version"], "2"), "version", "unsupported version '2'"),
        (at(["version"], True), "version", "unsupported version True"),
        (at(["more"], 1), "", "unknown key 'more'"),
        (without("events"), "", "events is missing"),
        (at(["events"], {}), "events", "expected an array of events"),
        (without("events", 1, "ts"), "events[1]", "ts is missing"),
        (at(["events", 1, "ts"], 99), "events[1].ts", "99 is before"),
        (at(["events", 1, "ts"], "99"), "events[1].ts", "expected whole seconds"),
        (at(["events", 1, "ts"], 1.5), "events[1].ts", "expected whole seconds"),
        (at(["events", 1, "ts"], -1), "events[1].ts", "expected whole seconds"),
        (at(["events", 1, "ts"], [1]), "events[1].ts", "expected a single value"),
        (at(["events", 1], 5), "events[1]", "expected a map of ts"),
        (at(["events", 0, "applied_objs"], None), "events[0].applied_objs", "expected an array of objects"),
        (at(FIRST, "web"), "events[0].applied_objs[0]", "expected an object, found a string"),
        (without(*FIRST, "kind"), "events[0].applied_objs[0] (apps/v1.? shop/web): kind", "is missing"),
        (at([*FIRST, "kind"], 5), "events[0].applied_objs[0] (apps/v1.5 shop/web): apiVersion", "be strings"),
        (at([*FIRST, "kind"], ""), "events[0].applied_objs[0] (apps/v1. shop/web): apiVersion", "name a kind"),
        (at([*FIRST, "metadata"], []), "events[0].applied_objs[0] (apps/v1.Deployment without a name)", "map"),
        (at([*FIRST, "metadata", "name"], 5), f"{WEB[:-4]}5): metadata.name", "a string, found a number"),
        (at([*FIRST, "metadata", "namespace"], "a/b"), "metadata.namespace", "none of them '/'"),
        (at([*FIRST, "metadata", "labels"], {"a": 1}), f"{WEB}: metadata.labels.a", "expected a string"),
        (at([*FIRST, "metadata", "ownerReferences"], [{}]), f"{WEB}: metadata.ownerReferences[0]", "kind"),
        (at([*FIRST, "metadata", "ownerReferences"], {"a": 1}), f"{WEB}: metadata.ownerReferences", "an array"),
        (at([*FIRST, "spec"], []), f"{WEB}: spec", "expected a map, found an array"),
        (at([*FIRST, "status"], 1), f"{WEB}: status", "expected a map, found a number"),
        (at([*FIRST, "spec", "x"], float("nan")), f"{WEB}: spec.x", "nan is not a JSON number"),
        (at([*FIRST, "spec", "x"], b"raw"), "events[0].applied_objs[0]", "binary data"),
        (at([*FIRST, "spec", "x"], msgpack.ExtType(5, b"a")), "events[0].applied_objs[0]", "binary data"),
        (at([*FIRST, "spec", 5], 1), "events[0].applied_objs[0]", "a key must be a string, found a number"),
        (at([*FIRST, "spec", "x"], "a" * (limits.MAX_STRING_BYTES + 1)), WEB[:25], "string is longer than"),
        (at(["config"], 1), "config", "expected a map of trackedObjects"),
        (at(["config", "trackedObjects"], {"Pod": {}}), "config.trackedObjects", "'Pod' does not name a kind"),
        (at(["config", "trackedObjects"], {"v1.Pod": None}), "config.trackedObjects.v1.Pod", "map of options"),
        (at(["config", "trackedObjects"], {"v1.Pod": {"skip": 1}}), "config.trackedObjects.v1.Pod", "'skip'"),
        (at(["config", "trackedObjects"], {"v1.Pod": {"skipOwned": 1}}), "config.trackedObjects.v1.Pod", "true"),
        (at(["index"], []), "index", "expected a map of kinds"),
        (at(["index"], {"v1.Pod": {"a/b": -1}}), "index.v1.Pod.a/b", "expected a hash"),
        (at(["index"], {"v1.Pod": {"a/b": "1"}}), "index.v1.Pod.a/b", "expected a hash"),
        (at(["index"], {"v1.Pod": {5: 1}}), "index.v1.Pod", "expected namespace/name, found 5"),
        (at(["index"], {5: {}}), "index", "expected a kind"),
        (at(["pod_lifecycles"], {"v1.Pod": {}}), "pod_lifecycles, owner 0", "expected a pair"),
        (at(["pod_lifecycles"], {("v1.Pod",): {}}), "pod_lifecycles, owner 0", "expected a pair"),
        (at(["pod_lifecycles"], LIVES), "pod_lifecycles.v1.Pod a/b, pod hash 1[0]", 'expected "Empty"'),
        (lambda d: list(d.values()), "", "version 1"),
        (lambda d: {}, "", "version is missing"),
        (lambda d: 5, "", "first byte is 0x05"),
    ],
)
def test_refused_with_its_place(change, place, problem):
    error = refusal(broken(change))
    assert place in error.place if place.startswith("metadata") else error.place.startswith(place)
    assert problem in error.problem


def test_version_1_gets_advice():
    assert "steersman record" in refusal(broken(lambda d: list(d.values()))).remedy


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "empty"),
        (b"\x1f\x8b\x08", "gzip"),
        (b' \n{"version": 2}', "JSON"),
        (msgpack.packb(DOCUMENT) + b"\x00\x00", "2 bytes follow"),
        (b"\x81\xa7version\xc1", "no msgpack"),
        (b"\x81\xa1\xff", "not UTF-8"),
        (b"\x82\xa7version\x02\xa7version\x02", "version is there twice"),
    ],
)
def test_refused_bytes(raw, problem):
    assert problem in refusal(raw).problem


def test_a_key_given_twice_in_an_object():
    raw = msgpack.packb(DOCUMENT).replace(b"\xa8replicas\x02", b"\xa1a\x01", 1)
    twice = raw.replace(b"\xa4spec\x81\xa1a\x01", b"\xa4spec\x82\xa1a\x01\xa1a\x02", 1)
    assert "'a' is there twice" in refusal(twice).problem


@pytest.mark.parametrize("name", REAL[:2])
def test_every_truncation_is_refused(real_inputs, name):
    raw = (real_inputs / f"{name}.sktrace").read_bytes()
    for size in range(1, len(raw)):
        error = refusal(raw[:size])
        assert "ends here" in error.problem and ("events[" in error.place or size < 200 or size > 1000)


def nested(depth):
    value = 0
    for _ in range(depth):
        value = [value]
    return value


def test_nesting():
    # The object is level 0, its spec level 1, and x in it level 2.
    deep = limits.MAX_DEPTH - 2
    sktrace.loads(broken(at([*FIRST, "spec", "x"], nested(deep))))
    assert "nested deeper" in refusal(broken(at([*FIRST, "spec", "x"], nested(deep + 1)))).problem
    bomb = broken(at([*FIRST, "spec", "x"], "MARK")).replace(b"\xa4MARK", b"\x91" * 100_000 + b"\x00")
    assert "nested too deeply" in refusal(bomb).problem


HUGE = {"array": b"\xdd", "map": b"\xdf", "string": b"\xdb"}


@pytest.mark.parametrize("header", HUGE)
@pytest.mark.parametrize("key", ["config", "events", "index", "pod_lifecycles", "x"])
def test_a_claimed_length_costs_no_memory(key, header):
    # Nested, and each level claims 1,000,000 elements: a reader that believes it reserves up to 8 MB a level.
    place = [key] if key in DOCUMENT else [*FIRST, "spec", key]
    claim = (HUGE[header] + (1_000_000).to_bytes(4, "big")) * 100
    raw = broken(at(place, "MARK")).replace(b"\xa4MARK", claim, 1) + bytes(1_000_000)
    tracemalloc.start()
    try:
        refusal(raw)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("limit", "value", "problem"),
    [
        ("MAX_EVENTS", 1, "at most 1 elements, found 2"),
        ("MAX_OBJECTS", 1, "more than 1 objects"),
        ("MAX_VALUES", 8, "more than 8 values"),
        ("MAX_OBJECT_BYTES", 50, "more than 50"),
    ],
)
def test_limits(monkeypatch, limit, value, problem):
    monkeypatch.setattr(f"steersman.trace.decode.{limit}", value)
    error = refusal(msgpack.packb(DOCUMENT))
    assert problem in error.problem and "docs/traces.md" in error.remedy


def test_file_size_limit(monkeypatch):
    monkeypatch.setattr(sktrace, "MAX_FILE_BYTES", 100)
    assert "more than 0 MiB" in refusal(bytes(101)).problem


def mutations(raw, data):
    """`raw` after a few small damages."""
    raw = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 4))):
        i = data.draw(st.integers(0, max(0, len(raw) - 1)))
        piece = data.draw(st.binary(max_size=6) | st.sampled_from([b"\xdd\xff\xff\xff\xff", b"\x80", b"\xc0"]))
        match data.draw(st.sampled_from(["set", "insert", "cut", "end", "twice"])):
            case "set":
                raw[i : i + len(piece)] = piece
            case "insert":
                raw[i:i] = piece
            case "cut":
                del raw[i : i + data.draw(st.integers(1, 40))]
            case "end":
                del raw[i:]
            case "twice":
                raw[i:i] = raw[i : i + data.draw(st.integers(1, 60))]
    return bytes(raw)


def assert_only_trace_errors(raw):
    try:
        trace = sktrace.loads(raw, "x")
    except TraceError:
        return
    assert sktrace.loads(sktrace.dumps(trace)) == trace


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_fuzz_generated(data):
    assert_only_trace_errors(mutations(sktrace.dumps(data.draw(traces())), data))


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_fuzz_real(real_inputs, data):
    name = data.draw(st.sampled_from(REAL[:2]))
    assert_only_trace_errors(mutations((real_inputs / f"{name}.sktrace").read_bytes(), data))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_fuzz_noise(raw):
    assert_only_trace_errors(raw)
    assert_only_trace_errors(b"\x85\xa7version\x02\xa6config\x81\xaetrackedObjects\x80\xa6events" + raw)


# --- files --------------------------------------------------------------------------------------------

TRACE = sktrace.loads(msgpack.packb(DOCUMENT))


def test_write_and_read(tmp_path):
    path = tmp_path / "a.sktrace"
    sktrace.write(path, TRACE)
    assert sktrace.read(path) == TRACE
    path.chmod(0o600)
    link = tmp_path / "link.sktrace"
    link.symlink_to(path)
    sktrace.write(link, Trace())
    assert link.is_symlink() and sktrace.read(path) == Trace()
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["a.sktrace", "link.sktrace"]


def test_read_refuses(tmp_path):
    for path in (tmp_path / "none", tmp_path, "a\0b"):
        with pytest.raises(TraceError, match="cannot read it"):
            sktrace.read(path)


def test_write_refuses(tmp_path):
    for path in (tmp_path / "no" / "folder", tmp_path, "a\0b"):
        with pytest.raises(TraceError, match="cannot write it"):
            sktrace.write(path, TRACE)
    assert os.listdir(tmp_path) == []


def test_a_full_disk():
    with pytest.raises(TraceError, match="No space left on device"):
        sktrace.write("/dev/full", TRACE)


def test_a_write_that_fails_half_way_leaves_the_old_file(tmp_path):
    # The kernel stops the file at 64 bytes: a write that begins well and then fails, as on a full disk.
    path = tmp_path / "a.sktrace"
    sktrace.write(path, Trace())
    old = path.read_bytes()
    program = """if True:
        import resource, signal, sys
        from steersman.trace import sktrace
        trace = sktrace.loads(sys.stdin.buffer.read())
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
        try:
            sktrace.write(sys.argv[1], trace)
        except sktrace.TraceError as error:
            print(error)
    """
    result = subprocess.run(
        [sys.executable, "-B", "-c", program, str(path)],
        input=msgpack.packb(DOCUMENT),
        capture_output=True,
        check=True,
    )
    assert b"File too large" in result.stdout and b"Nothing was changed" in result.stdout
    assert os.listdir(tmp_path) == ["a.sktrace"] and path.read_bytes() == old


@pytest.mark.parametrize("spec", [{"a": 2**64}, {"a": object()}, {"a": "\ud800"}, {"a": b"x"}, {"a": nested(600)}])
def test_dumps_refuses_what_could_not_be_read(spec):
    with pytest.raises(TraceError):
        sktrace.dumps(Trace(events=(TraceEvent(1, ({**OBJECT, "spec": spec},)),)))
    with pytest.raises(TraceError, match="unsupported version 3"):
        sktrace.dumps(Trace(version=3))
    with pytest.raises(TraceError, match="is before"):
        sktrace.dumps(Trace(events=(TraceEvent(2), TraceEvent(1))))
