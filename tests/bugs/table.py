"""The corpus as one table: every row that `tests/bugs/pairs` has, and what is not attempted."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Final

from tests.bugs import pairs
from tests.bugs.row import Omitted, Row

SIEVE: Final = (1, 2, 3, 5, 6, 8, 9, 10, 11, 12, 13, 15, 17, 20, 21, 23, 24, 26, 27, 28, 30, 31, 33, 35, 37, 38, 39, 40)
SIEVE_MORE: Final = (42, 43, 45)
ACTO: Final = (47, 48, 50, 52, 53, 55)
CORE: Final = (56, 58, 59, 61, 63, 64, 65, 67, 68, 70, 71, 72, 74, 75, 76, 77, 79, 80, 82, 84, 85, 87, 89, 91, 92, 94)
CORE_MORE: Final = (95, 97, 98, 99, 102, 103, 105)
NUMBERS: Final = (*SIEVE, *SIEVE_MORE, *ACTO, *CORE, *CORE_MORE)
"""The 70 rows: bugs that Sieve found, bugs that Acto found, bugs of Kubernetes itself and of its ecosystem."""

OMITTED: Final = (
    Omitted(
        5,
        "instaclustr/cassandra-operator#400",
        "a data structure is misused, so that scaling down never ends; which one and how is not told",
    ),
    Omitted(23, "PSMDB-591", "after sharding was switched off and on the cluster reports an error; why is not told"),
    Omitted(
        42, "yugabyte/yugabyte-operator#43", "after TLS was switched off and on a server does not run; why is not told"
    ),
    Omitted(59, "kubernetes/kubernetes#40415", "a second ReplicaSet after an upgrade; the cause is not known"),
)


def rows() -> list[Row]:
    """All rows, by number."""
    names = [f"{pairs.__name__}.{found.name}" for found in pkgutil.iter_modules(pairs.__path__)]
    modules = [importlib.import_module(name) for name in names]
    return sorted([row for module in modules for row in module.ROWS], key=lambda row: row.number)
