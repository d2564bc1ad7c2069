"""Where runs come to rest, and what parts the ways there."""

import pytest

import steersman as sm
from examples.check import over_creation
from steersman.check.ends import parting

RACE = """
class First(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        seen = c.get(key)
        if not seen.data.owner:
            c.patch(key, {"data": {"owner": type(self).__name__}})

class Second(First):
    pass

def scenario_race():
    w = sm.Scenario("race")
    a = w.apply(OBJECT)
    w.run(First, Second)
    w.always("nothing is lost", lambda s: True)
    return w
"""


def over_created(**options):
    return sm.check(over_creation.scenario(over_creation.NaiveReplicaSet), lag=1, **options)


def test_a_verdict_knows_the_way_to_each_end():
    verdict = over_created()
    assert [end.number for end in verdict.ends] == [1, 2] and verdict.converged == 2
    pods = [sum(key.kind == "Pod" for key in end.objects()) for end in verdict.ends]
    assert sorted(pods) == [1, 2]
    for end in verdict.ends:
        assert len(end.story.steps) == len(end.actions) == len(end.schedule.labels)


def test_two_ends_differ_in_fields_and_objects_and_part_at_a_step():
    one, other = over_created().ends
    found = parting(one, other)
    at = found.step - 1
    assert one.actions[:at] == other.actions[:at] and one.actions[at] != other.actions[at]
    assert found.first == one.story.named(one.story.steps[at].text)
    signs = {(each.key.kind, each.sign) for each in found.differences}
    assert signs == {("Pod", "+"), ("ReplicaSet", "~")}
    fields = [each.fields for each in found.differences if each.sign == "~"]
    assert fields == [(("status.replicas", 1, 2),)]
    back = parting(other, one)
    assert {(each.key.kind, each.sign) for each in back.differences} == {("Pod", "-"), ("ReplicaSet", "~")}


def test_a_search_that_was_cut_short_has_those_it_found():
    cut = over_created(max_states=50)
    assert not cut.complete and 0 < len(cut.ends) < 2


def test_the_command_lists_and_compares(run):
    code, out, _ = run(RACE, "--ends")
    assert code == 0
    assert "  end 1: " in out and "  end 2: " in out and "part at" not in out
    _, out, _ = run(RACE, "--diff-ends", "1,2")
    said = out.partition("  the ways to the ends 1 and 2 part at step ")[2]
    assert "    ~ ConfigMap default/a" in said
    assert 'data.owner: "First" → "Second"' in said or 'data.owner: "Second" → "First"' in said
    _, out, _ = run(RACE, "--diff-ends", "1,7")
    assert "ends 1 and 7 are not compared: there are 2 ends" in out


@pytest.mark.parametrize("text", ["1", "a,b", "1,2,3", "1;2"])
def test_what_is_no_pair_is_a_mistake(run, text):
    code, _, err = run(RACE, "--diff-ends", text)
    assert code == 2 and "--diff-ends" in err and "such as 1,2" in err
