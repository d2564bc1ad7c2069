"""A cache that still shows the namesake of before, being deleted: what belongs to the live one is deleted."""

from examples.check import live_volumes
from tests.bugs.row import Row

ROWS = (
    Row(
        1,
        "k8ssandra/cass-operator#118",
        "the end of a datacenter of the same name is seen late: the volumes of the live one are deleted",
        live_volumes.scenario,
        live_volumes.CleanByName,
        live_volumes.CleanByUid,
        ("a ready StatefulSet keeps its volume",),
        {"lag": 1},
    ),
)
