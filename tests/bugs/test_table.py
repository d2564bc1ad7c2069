"""The table has every row of the corpus, and docs/corpus.md says what the table says."""

from __future__ import annotations

import importlib.util

from tests.bugs.row import links
from tests.bugs.table import NUMBERS, OMITTED, rows
from tests.source import ROOT


def script():
    """scripts/corpus.py."""
    spec = importlib.util.spec_from_file_location("corpus", ROOT / "scripts/corpus.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_has_70_rows():
    """Each is a pair or omitted with the reason, never both."""
    assert len(set(NUMBERS)) == 70
    done, omitted = {row.number for row in rows()}, {row.number for row in OMITTED}
    assert not done & omitted
    assert done | omitted == set(NUMBERS)
    assert all(row.reason for row in OMITTED)


def test_the_page_is_not_stale():
    """It has a line for each row and each omission, in order; what was measured may differ from machine to machine."""
    lines = script().PAGE.read_text().splitlines()
    told = [line for line in lines if line.startswith("| ") and line[2].isdigit()]
    heads = [f"| {row.number} | {links(row.source)} | {row.mechanism} |" for row in rows()]
    heads += [f"| {row.number} | {links(row.source)} | {row.reason} |" for row in OMITTED]
    assert len(told) == len(heads), "run: python scripts/corpus.py"
    for line, head in zip(told, heads, strict=True):
        assert line.startswith(head), "run: python scripts/corpus.py"


def test_links():
    assert links("a/b#3, PSMDB-4, X-5") == (
        "[b 3](https://github.com/a/b/issues/3), [PSMDB-4](https://jira.percona.com/browse/PSMDB-4), X-5"
    )
