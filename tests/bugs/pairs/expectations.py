"""A cache that does not yet show what was just created: it is created again."""

from examples.check import over_creation
from tests.bugs.row import Row

ROWS = (
    Row(
        58,
        "kubernetes/kubernetes#8138",
        "pods are listed before it is checked that what was created has been seen: one pod too many",
        over_creation.scenario,
        over_creation.NaiveReplicaSet,
        over_creation.CarefulReplicaSet,
        ("never more pods than replicas", "converges"),
        {"lag": 1},
    ),
)
