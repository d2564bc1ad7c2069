"""Files of saved runs: what is written is read again, and what somebody else wrote is believed nothing."""

import copy
import dataclasses
import json

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steersman as sm
from examples.check import over_creation
from steersman.check.report import run_file
from steersman.check.report.checked import Checked
from steersman.check.report.run_file import RunFileError
from steersman.check.report.saved_run import SavedPlace, dumped, saved


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


@pytest.fixture
def reads(tmp_path):
    """Reads a document from a file."""

    def read(document):
        path = tmp_path / "a.run"
        path.write_bytes(document if isinstance(document, bytes) else orjson.dumps(document))
        return run_file.read(path)

    return read


def test_what_is_saved_is_read_again(command, tmp_path):
    path = tmp_path / "new" / "a.run"
    run_file.save(command, path)
    assert run_file.read(path) == command
    left = dataclasses.replace(command, place=SavedPlace(0, "end 1", 3), marks=[SavedPlace(0, "violation 1", 2)])
    run_file.save(left, path)
    assert run_file.read(path) == left
    assert [each.name for each in path.parent.iterdir()] == ["a.run"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no JSON"),
        (b"\x00\xff\x00", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "no saved run"),
        (b'{"format": "something"}', "no saved run"),
        (b'{"format": "steersman run", "version": 2}', "version 2 of the format; this steersman reads 1"),
        (b'{"format": "steersman run", "version": 1}', "the document has no field"),
    ],
)
def test_what_is_no_run_is_refused(reads, data, why):
    with pytest.raises(RunFileError, match=why) as error:
        reads(data)
    assert "steersman check FILE --save RUN" in str(error.value)


def test_a_large_file_and_one_that_is_not_there_are_refused(reads, tmp_path, monkeypatch):
    monkeypatch.setattr(run_file, "MAX_BYTES", 1 << 20)
    with pytest.raises(RunFileError, match="larger than 1 MB"):
        reads(b" " * ((1 << 20) + 1))
    with pytest.raises(RunFileError, match="No such file"):
        run_file.read(tmp_path / "nothing.run")
    with pytest.raises(RunFileError, match="Is a directory"):
        run_file.read(tmp_path)


WRONG = [
    (("checks", 0, "target"), 1, r"checks\[0\].target must be a str, not a int"),
    (("checks", 0, "holds"), 1, "must be a bool"),
    (("checks", 0, "extra"), "", "must not have a field 'extra'"),
    (("checks", 0, "violations", 0, "run", "steps", 0, "number"), 7, "number of step 1 is 7"),
    (("checks", 0, "violations", 0, "run", "steps", 1, "causes"), [[2, "read"]], "cause of step 2 is 2"),
    (("checks", 0, "violations", 0, "run", "steps", 1, "causes"), [[1, "read", 1]], "must have 2 parts"),
    (("checks", 0, "violations", 0, "run", "lanes"), [], "in no lane"),
    (("checks", 0, "violations", 0, "run", "turn"), 10**30, "turn must be a int"),
    (("checks", 0, "partings", 0, "one"), 99, "partings one is 99"),
    (("checks", 0, "picture", "spots", 3, "parent"), 3, "state before state 3 is 3"),
    (("checks", 0, "picture", "spots", 3, "depth"), 0, "depth of state 3"),
    (("checks", 0, "picture", "edges", 0), [0, 10**6, 0], "edge is 1000000"),
    (("checks", 0, "branches", 4), None, "step to state 4 is missing"),
    (("checks", 0, "branches"), [None], "1 steps lead to them"),
    (("place",), {"check": 5, "run": "", "step": 0}, "place.check is 5"),
]


@pytest.mark.parametrize(("where", "value", "why"), WRONG)
def test_nothing_in_it_is_believed(command, reads, where, value, why):
    document = orjson.loads(dumped(command))
    inside = document
    for part in where[:-1]:
        inside = inside[part]
    inside[where[-1]] = value
    data = json.dumps(document).encode()  # which writes numbers of any size
    with pytest.raises(RunFileError, match=why):
        reads(data)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_is_put_in_there_is_one_error_or_none(command, data, tmp_path_factory):
    document = orjson.loads(dumped(command))
    inside, path = document, []
    while isinstance(inside, (dict, list)) and inside and (len(path) < 3 or data.draw(st.booleans())):
        path.append(data.draw(st.sampled_from(sorted(inside) if isinstance(inside, dict) else range(len(inside)))))
        holder, inside = inside, inside[path[-1]]
    other = st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.text(), st.just([]), st.just({}))
    holder[path[-1]] = data.draw(other)
    file = tmp_path_factory.getbasetemp() / "hostile.run"
    file.write_bytes(orjson.dumps(copy.deepcopy(document)))
    try:
        run_file.read(file)
    except RunFileError as error:
        assert len(str(error)) < 1_000


def test_the_command_saves(run, tmp_path):
    text = """
def scenario_one():
    w = sm.Scenario("one")
    w.apply(OBJECT)
    w.run(Writer)
    return w
"""
    code, _, err = run(text, "--save", "out/one.run")
    assert code == 0 and "wrote out/one.run; look at it with steersman inspect out/one.run" in err
    (check,) = run_file.read(tmp_path / "out" / "one.run").checks
    assert check.title == "one" and check.word == "COMPLETE" and len(check.ends) == 1
