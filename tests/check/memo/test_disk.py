"""The memo on disk: nothing but the number of executions differs, and only changed controllers are executed again."""

import pytest

import steersman as sm
from steersman.check.load import load
from steersman.check.memo import disk
from steersman.check.mistake import ScenarioError
from tests.check.models import config, key
from tests.laws.test_reduction_laws import MODELS

FILE = """
import steersman as sm
from steersman.kernel.object import Key
import {helper}

LIMIT = {limit}

class First(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        if key.name == "a" and not c.get(key).data.first:
            c.patch(key, {{"data": {{"first": {first!r}}}}})

class Second(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        if len(c.list("v1/ConfigMap", "default", labels="app in (x,y),!b")) > LIMIT:
            return
        if not c.get(key).data.second:
            c.patch(key, {{"data": {{"second": {helper}.value()}}}})

def scenario():
    w = sm.Scenario("two")
    for name in ("a", "b"):
        w.apply({{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": name, "namespace": "default",
                 "labels": {{"app": "x"}}}}}})
    w.run(First, Second)
    w.converges(lambda s: s[Key("", "ConfigMap", "default", "a")].data.first)
    return w
"""


def facts(verdict):
    violations = [(v.kind, v.name, v.message, v.actions, v.cycle) for v in verdict.violations]
    return verdict.states, verdict.transitions, verdict.converged, verdict.incomplete, violations


@pytest.fixture
def checked(tmp_path, monkeypatch):
    """Checks the file's scenario with a memo; what it says of the executions of each controller."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(first="1", limit=5, value="x", memo=tmp_path / "memo"):
        helper = f"memo_helper_{abs(hash(str(tmp_path)))}"
        (tmp_path / f"{helper}.py").write_text(f"def value():\n    return {value!r}\n")
        monkeypatch.delitem(__import__("sys").modules, helper, raising=False)
        __import__("importlib").invalidate_caches()
        (tmp_path / "two.py").write_text(FILE.format(helper=helper, first=first, limit=limit))
        monkeypatch.setattr("sys.dont_write_bytecode", True)
        target = load(f"{tmp_path / 'two.py'}::scenario")[0]
        return sm.check(target.function(), memo=memo and str(memo), atomic=True)

    return run


@pytest.mark.parametrize("model", ["trivial", "foo/bar", "claim", "live volumes"])
def test_a_memo_changes_no_verdict(model, tmp_path):
    """R1, of the memo on disk."""
    make, bounds = MODELS[model]
    plain = sm.check(make(), **bounds)
    first = sm.check(make(), memo=str(tmp_path), **bounds)
    again = sm.check(make(), memo=str(tmp_path), **bounds)
    assert facts(first) == facts(plain) and first.executions <= plain.executions
    assert facts(again) == facts(plain)
    wrong = any(v.kind == "finding" for v in plain.violations)
    assert again.executions < plain.executions / 4 if wrong else again.executions == 0, again.memo


def test_only_what_changed_is_executed(checked):
    assert checked().executions > 0
    assert checked().executions == 0
    changed = checked(first="2")
    both = checked(first="2", memo=None)
    assert 0 < changed.executions < both.executions and facts(changed) == facts(both)
    assert checked(first="2").executions == 0
    assert checked().executions == 0, "what was kept of the earlier code is still there"


@pytest.mark.parametrize("change", [{"limit": 1}, {"value": "y"}], ids=str)
def test_globals_and_modules_belong_to_the_code(checked, change):
    checked()
    changed = checked(**change)
    assert changed.executions > 0
    assert facts(changed) == facts(checked(**change, memo=None))


def test_what_is_wrong_is_found_again(tmp_path):
    """A finding is executed every time: it must be told every time."""
    counts = []

    class Drifts(sm.Controller):
        kind = "v1/ConfigMap"

        def reconcile(self, c, key):
            counts.append(1)
            if not c.get(key).data.number:
                c.patch(key, {"data": {"number": str(len(counts))}})

    def run():
        w = sm.Scenario()
        w.apply(config("a"))
        w.run(Drifts)
        return sm.check(w, memo=str(tmp_path), max_states=50)

    for _ in range(2):
        counts.clear()
        assert "non-determinism" in [v.name for v in run().violations]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-20],
        lambda text: b"\x80\x04" + text,
        lambda text: text.replace(b"memo 1", b"memo 2"),
        lambda text: text.replace(b'"get"', b'"got"'),
        lambda text: text + b"0" * 40 + b"\n",
        lambda text: b"",
    ],
)
def test_a_damaged_file_is_not_used(checked, tmp_path, damage):
    plain = checked()
    for path in (tmp_path / "memo").glob("*.memo"):
        path.write_bytes(damage(path.read_bytes()))
    again = checked()
    assert facts(again) == facts(plain) and again.executions == plain.executions
    assert "is not used: " in again.memo
    assert checked().executions == 0, "it was written anew"


@pytest.mark.parametrize(
    "step", [b"[]", b"7", b'["call","write",false,-1,[1]]', b'["result"]', b'{"a":1}', b"{", b"null"]
)
def test_a_step_that_is_none_is_not_used(checked, tmp_path, step):
    """The checksum can be right and the content wrong."""
    plain = checked()
    for path in (tmp_path / "memo").glob("*.memo"):
        head, *lines = path.read_bytes().splitlines()
        names = [line.split(b" ")[0] for line in lines]
        bad = [b"%b %b %b" % (name, disk._sum(name, step), step) for name in names]
        path.write_bytes(b"\n".join([head, *bad, b""]))
    again = checked()
    assert facts(again) == facts(plain) and again.executions == plain.executions
    assert "a step is not used: " in again.memo


def test_a_folder_of_others_is_refused(checked, tmp_path):
    folder = tmp_path / "memo"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(ScenarioError, match="others may write there"):
        checked()
    (tmp_path / "file").write_text("")
    with pytest.raises(ScenarioError, match="name a folder that can be written to"):
        checked(memo=tmp_path / "file")


def test_links_are_not_followed(checked, tmp_path):
    checked()
    for path in (tmp_path / "memo").glob("*.memo"):
        path.rename(tmp_path / path.name)
        path.symlink_to(tmp_path / path.name)
    assert "is not used" in checked().memo


def test_it_is_bounded(checked, tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "MAX_FILE", 600)
    plain = checked()
    assert all(path.stat().st_size < 700 for path in (tmp_path / "memo").glob("*.memo"))
    assert 0 < checked().executions < plain.executions
    monkeypatch.setattr(disk, "MAX_FOLDER", 700)
    checked(first="2")
    assert sum(path.stat().st_size for path in (tmp_path / "memo").iterdir()) <= 700


def test_what_has_no_digest_is_executed(tmp_path):
    handle = open(__file__)  # noqa: SIM115
    handle.close()

    class Reads(sm.Controller):
        kind = "v1/ConfigMap"

        def reconcile(self, c, key):
            return None if handle.closed else c.get(key)

    w = sm.Scenario()
    w.apply(config("a"))
    w.run(Reads)
    assert "reads is executed every time: it depends on a TextIOWrapper" in sm.check(w, memo=str(tmp_path)).memo


def test_configurations_are_kept_apart(tmp_path):
    class Sized(sm.Controller):
        kind = "v1/ConfigMap"

        def __init__(self, size=1):
            self.size = size

        def reconcile(self, c, key):
            if c.get(key).data.size != str(self.size):
                c.patch(key, {"data": {"size": str(self.size)}})

    def run(size):
        w = sm.Scenario()
        w.apply(config("a"))
        w.run(lambda: Sized(size))
        w.converges(lambda s: s[key("a")].data.size == str(size))
        return sm.check(w, memo=str(tmp_path))

    assert run(1).holds and run(2).holds
    assert run(1).executions == run(2).executions == 0


def test_walks_use_it(checked, tmp_path):
    checked()
    target = load(f"{tmp_path / 'two.py'}::scenario")[0]
    walked = sm.check(target.function(), memo=str(tmp_path / "memo"), walks=5)
    assert "0 steps recalled" not in walked.memo
