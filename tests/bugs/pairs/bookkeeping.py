"""What a controller remembers of others, and what became of them meanwhile."""

# ruff: noqa: RUF012  (controllers are declared as a person declares them)

from contextlib import suppress
from typing import Final

import steersman as sm
from tests.bugs.objects import config_key, config_map, custom, custom_key, key_of, made
from tests.bugs.row import Row

CLAIM_KEY: Final = custom_key("NodeClaim", "gpu")
POOL: Final = config_key("pool")


class Seeds(sm.Controller):
    """Claims nodes for a pool, and remembers which, until it sees that they are gone. It reports whether what
    it remembers is there, and looks again while it is not."""

    kind = "v1/ConfigMap"
    watches = {"example.com/v1/NodeClaim": lambda obj: [POOL, key_of(obj)]}
    workers = 2
    looks_again = False

    def reconcile(self, c, key):
        if key.kind == "NodeClaim":
            if c.get(key) is not None:
                c.memory[key.name] = "seen"
            elif c.memory.get(key.name):
                del c.memory[key.name]
            return
        pool = c.get(key)
        if pool.data.claimed != "yes":
            with suppress(sm.AlreadyExists):
                c.create(made("NodeClaim", CLAIM_KEY.name))
            c.patch(key, {"data": {"claimed": "yes"}})
            c.memory[CLAIM_KEY.name] = "made"
            return
        said = self.in_step(c)
        if pool.data.inStep != said:
            c.patch(key, {"data": {"inStep": said}})
        if said == "no":
            c.requeue(1)

    def in_step(self, c):
        """Whether what it remembers is there."""
        remembered = c.memory.get(CLAIM_KEY.name) is not None
        if remembered and self.looks_again and c.get(CLAIM_KEY, fresh=True) is None:
            del c.memory[CLAIM_KEY.name]
            remembered = False
        return "yes" if remembered == (c.get(CLAIM_KEY) is not None) else "no"


class SeedsThatHeal(Seeds):
    """Forgets what the API server does not have."""

    looks_again = True


def short_lived(controller):
    """A claim that is given up right after it was made, since there are no such machines."""
    w = sm.Scenario(controller.__name__)
    w.kind(custom("NodeClaim", {}, {}))
    w.apply(config_map("pool"))
    w.run(controller)
    w.user("give it up", lambda c: c.delete(CLAIM_KEY))
    w.converges(lambda s: s[POOL].data.inStep == "yes", name="in step in the end")
    return w


ROWS = (
    Row(
        102,
        "kubernetes-sigs/karpenter#3176",
        "the claim of a node is given up before its maker has noted that it made it: it remembers it for ever, and is "
        "never in step again",
        short_lived,
        Seeds,
        SeedsThatHeal,
        ("in step in the end",),
        harder={"lag": 1, "conflicts": 1},
        shows=("user: give it up",),
    ),
)
