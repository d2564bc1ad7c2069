"""The page: one file with everything in it, whatever objects and people are called."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import steersman as sm
from examples.check import over_creation
from steersman.check import picture
from steersman.check.report.cause import causes_of_last
from steersman.check.report.checked import Checked
from steersman.check.report.page import page
from steersman.check.report.saved_run import saved

EVIL = "</script><script>document.title='owned'</script><!-- <img src=x onerror=\"document.title='owned'\"> \u2028&amp;"

HOSTILE = f"""
EVIL = {EVIL!r}

class Ticks(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        c.patch(key, {{"data": {{"n": "2" if c.get(key).data.n == "1" else "1"}}}})

def scenario_hostile():
    w = sm.Scenario(EVIL + " \\u202e \\udc80")
    a = w.apply(OBJECT)
    w.run(Ticks)
    w.user(EVIL, lambda c: c.patch(a, {{"data": {{"evil": EVIL}}}}))
    w.always(EVIL + " \\udc80", lambda s: s[a].data.n != "2" or not s[a].data.evil)
    return w
"""


def embedded(text: str) -> dict:
    inside = re.search(r'<script type="application/json" id="run">(.*?)</script>', text, re.DOTALL)
    return json.loads(inside[1])


def checked(verdict) -> Checked:
    return Checked("over_creation.py", "test_it", 1, verdict)


def over_created(picturing, **options):
    session = sm.check.Session()
    session.picturing = picturing
    sm.check.sessions.append(session)
    try:
        return sm.check(over_creation.scenario(over_creation.NaiveReplicaSet), lag=1, **options)
    finally:
        sm.check.sessions.remove(session)


def test_names_end_nothing_and_mean_nothing(run):
    code, _, err = run(HOSTILE, "--html", "out/page.html")
    assert code == 1 and "wrote out/page.html" in err
    text = Path("out/page.html").read_text()
    (check,) = embedded(text)["checks"]
    assert check["title"].startswith(EVIL.replace("\u2028", "\\u2028"))
    assert "\u202e" not in text and "\\u202e" in check["title"]  # shown, and without effect
    assert text.count("<script") == text.count("</script") == 2
    assert "<img" not in text and "<!--" not in text
    user = [step for step in check["violations"][0]["run"]["steps"] if step["mark"] == "user"]
    assert user and user[0]["lane"] == "users"


def test_the_page_needs_nothing_else_and_allows_nothing_else():
    text = page(saved([checked(over_created(True))]))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert "default-src 'none'" in policy
    for tag in ("style", "script"):
        inside = re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
        assert "innerHTML" not in inside and "import" not in inside
    assert set(re.findall(r"https?://[^\s\"')]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, not a place


def test_steps_have_lanes_marks_and_causes():
    (check,) = embedded(page(saved([checked(over_created(False))])))["checks"]
    run = check["violations"][0]["run"]
    steps = {step["number"]: step for step in run["steps"]}
    assert run["lanes"] == ["naive-replica-set", "naive-replica-set: view of ReplicaSet"]
    (stale,) = [step for step in steps.values() if step["stale"]]
    missed = [number for number, how in stale["causes"] if how == "missed"]
    assert [steps[number]["mark"] for number in missed] == ["write"]
    assert [change["name"][:4] for change in steps[missed[0]]["changes"]] == ["Pod "]
    assert steps[missed[0]]["changes"][0]["whole"].startswith("{")
    told = [step for step in steps.values() if step["mark"] == "view"]
    assert told and all([how for _, how in step["causes"]] == ["told"] for step in told)
    woken = [cause for step in steps.values() if step["mark"] == "start" for cause in step["causes"]]
    assert [how for _, how in woken] == ["woken"]
    assert check["picture"] is None


def test_a_livelock_has_its_turn(run):
    run(HOSTILE, "--html", "page.html")
    (check,) = embedded(Path("page.html").read_text())["checks"]
    (for_ever,) = [each["run"] for each in check["violations"] if each["title"].startswith("livelock")]
    assert for_ever["for_ever"] and 0 < for_ever["turn"] < len(for_ever["steps"])
    spots = check["picture"]["spots"]
    assert "loop" in {spot["mark"] for spot in spots}


def test_a_small_graph_is_drawn_whole():
    verdict = over_created(True)
    drawn = verdict.picture
    assert len(drawn.spots) == verdict.states and len(drawn.edges) == verdict.transitions
    assert drawn.said == f"all {verdict.states} states that were visited"
    marks = [spot.mark for spot in drawn.spots]
    assert marks[0] == "start" and "end" in marks and "violated" in marks
    for spot in drawn.spots[1:]:
        assert drawn.spots[spot.parent].depth == spot.depth - 1 and drawn.actions[spot.via]


def test_the_way_to_each_state_is_told():
    verdict = over_created(True)
    (check,) = embedded(page(saved([checked(verdict)])))["checks"]
    spots, steps = check["picture"]["spots"], check["branches"]
    assert len(spots) == len(steps) and steps[0] is None
    for spot, step in zip(spots[1:], steps[1:], strict=True):
        assert step["label"] == check["picture"]["actions"][spot["via"]] and step["number"] == spot["depth"]
        assert all(0 < number < step["number"] for number, _ in step["causes"])
    violated = next(at for at, spot in enumerate(spots) if spot["mark"] == "violated")
    way = []
    while violated > 0:
        way.insert(0, steps[violated])
        violated = spots[violated]["parent"]
    assert way == check["violations"][0]["run"]["steps"]


def test_stores_of_the_picture_are_those_of_its_runs():
    verdict = over_created(True, crashes=1)
    stores = {}
    for spot, run in zip(verdict.picture.spots, verdict.branches, strict=True):
        stores.setdefault(spot.store, set()).add(run.last.sum_canonical)
        if run.steps and run.steps[-1].action.op == "run" and run.steps[-1].item not in run.start:
            assert "woken" in [cause.how for cause in causes_of_last(run)]
    assert all(len(sums) == 1 for sums in stores.values()) and len(stores) > 3
    ends = [spot.store for spot in verdict.picture.spots if spot.mark == "end"]
    assert len(ends) > len(verdict.ends)  # a store may be at rest in several states: with a budget left, and without


def test_of_a_large_graph_the_ways_that_matter(monkeypatch):
    monkeypatch.setattr(picture, "MAX_STATES", 40)
    verdict = over_created(True)
    drawn = verdict.picture
    assert 0 < len(drawn.spots) <= 40 < verdict.states
    assert f"{len(drawn.spots)} of {verdict.states} states" in drawn.said
    marks = {spot.mark for spot in drawn.spots}
    assert "violated" in marks
    assert all(spot.parent >= 0 for spot in drawn.spots[1:])


def test_what_was_cut_short_says_so():
    drawn = over_created(True, max_states=12).picture
    assert "BOUNDED" in drawn.said and "open" in {spot.mark for spot in drawn.spots}


def test_walks_have_no_graph(run):
    run(HOSTILE, "--html", "page.html", "--walks", "3")
    (check,) = embedded(Path("page.html").read_text())["checks"]
    assert check["picture"] is None and check["word"] == "BOUNDED"


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_a_browser_shows_it(run):
    run(HOSTILE, "--html", "page.html")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom"]
    shown = subprocess.run([*command, Path("page.html").absolute().as_uri()], capture_output=True, text=True)
    assert "<title>steersman check</title>" in shown.stdout
    body = shown.stdout.partition("<main>")[2]
    assert "ticks starts to reconcile" in body and "why?" in body and "<circle" in body
    assert "<img" not in body and "<script" not in body
