"""What tests of `steersman check` share: a file's beginning, a scenario in it, and what a mistake must look like."""

HEAD = """
import steersman as sm

class Noop(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        c.get(key)

class Writer(sm.Controller):
    kind = "v1/ConfigMap"
    def reconcile(self, c, key):
        if not c.get(key).data.done:
            c.patch(key, {"data": {"done": "yes"}})

OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
"""


def scenario(*lines, controllers="Writer"):
    body = "\n".join(f"    {line}" for line in lines)
    return f"""
def scenario_one():
    w = sm.Scenario("one")
    w.apply(OBJECT)
    w.run({controllers})
{body}
    return w
"""


def one_line(result, *wanted):
    code, _, err = result
    assert code == 2
    lines = err.strip().splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("steersman check: ")
    for text in wanted:
        assert text in lines[0], lines[0]
