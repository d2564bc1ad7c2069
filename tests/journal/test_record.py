"""Records come back from their stored form as they went in, and damage is never read as a record."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.journal import BadRecord, Commit, Corrupt, External, Input, Read, Reconcile, Write
from steersman.journal.record import MAX_RECORD_BYTES, Row, decode, decode_key, encode, encode_key

from .sample import commit, draw, reconcile

text = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=12)
blob = st.binary(max_size=40)
micros = st.integers(-(1 << 63), (1 << 63) - 1)
natural = st.integers(0, 1 << 62)
keys = st.tuples(text, text, text, text)
total = st.binary(min_size=16, max_size=16)
commits = st.builds(
    Commit,
    revision=st.just(1),
    key=keys,
    verb=st.sampled_from(["create", "update", "delete"]),
    actor=text,
    uid=text,
    object=st.binary(min_size=1, max_size=40),
    at=micros,
    sums=st.tuples(total, total),
    retention=st.sampled_from(["full", "head-only"]),
)
inputs = st.builds(Input, source=text, subject=text, data=blob, at=micros)


def many(items):
    return st.lists(items, max_size=3).map(tuple)


reconciles = st.builds(
    Reconcile,
    controller=text,
    code=blob,
    key=keys,
    reads=many(st.builds(Read, text, natural)),
    times=many(micros),
    randoms=many(blob),
    externals=many(st.builds(External, text, blob, blob)),
    writes=many(st.builds(Write, text, natural, blob)),
    end=text,
)
records = st.one_of(commits, inputs, reconciles)


@settings(max_examples=200)
@given(records)
def test_what_is_stored_is_what_was_given(record):
    entry = decode(encode(5, 2, 1, 0, record), "here")
    assert entry == (5, 2, 1, record)
    assert type(entry.record) is type(record)


@settings(max_examples=200)
@given(st.lists(keys, max_size=6))
def test_stored_keys_sort_as_the_keys_do(some):
    assert [decode_key(key) for key in sorted(map(encode_key, some))] == sorted(some)


@settings(max_examples=200)
@given(records, st.data())
def test_one_changed_bit_in_any_column_is_found(record, data):
    row = encode(5, 2, 1, 1, record)
    column = data.draw(st.sampled_from([name for name in Row._fields if getattr(row, name) not in (None, b"")]))
    value = getattr(row, column)
    if isinstance(value, int):
        changed = value ^ (1 << data.draw(st.integers(0, 62)))
    else:
        at = data.draw(st.integers(0, len(value) - 1))
        changed = value[:at] + bytes([value[at] ^ (1 << data.draw(st.integers(0, 7)))]) + value[at + 1 :]
    with pytest.raises(Corrupt, match=r"journal here: row \d+ is damaged .*backup"):
        decode(row._replace(**{column: changed}), "here")


def test_bytes_moved_between_columns_are_found():
    row = encode(5, 2, 1, 1, commit(1))
    moved = row._replace(fields=row.fields + row.body[:1], body=row.body[1:])
    with pytest.raises(Corrupt, match="checksum"):
        decode(moved, "here")
    with pytest.raises(Corrupt, match="checksum"):
        decode(row._replace(key=None, fields=row.key + row.fields), "here")


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"key": ("", "Pod", "default")}, "key"),
        ({"key": ("", "Pod", "default", "a\0b")}, "key"),
        ({"key": ("", "Pod", None, "a")}, "key"),
        ({"key": ("", "Pod", "\ud800", "a")}, "key"),
        ({"verb": "patch"}, "verb 'patch'"),
        ({"retention": "some"}, "retention 'some'"),
        ({"sums": (b"", b"")}, "sums"),
        ({"sums": None}, "stored"),
        ({"object": b""}, "object"),
        ({"object": None}, "object"),
        ({"object": "{}"}, "object"),
        ({"actor": None}, "actor"),
        ({"actor": "\ud800"}, "stored"),
        ({"uid": 7}, "uid"),
        ({"at": 1.5}, "at"),
        ({"at": 1 << 70}, "stored"),
        ({"object": b"x" * MAX_RECORD_BYTES}, "limit"),
    ],
)
def test_a_malformed_commit_is_refused_by_name(changes, names):
    with pytest.raises(BadRecord, match=names):
        encode(1, 1, 1, 1, replace(commit(1), **changes))


@pytest.mark.parametrize(
    "record",
    [
        replace(draw(), data="text"),
        replace(draw(), source=None),
        replace(reconcile(3), code="abc"),
        replace(reconcile(3), key="abc"),
        replace(reconcile(3), reads=None, times=object()),
        "not a record",
    ],
)
def test_other_malformed_records_are_refused(record):
    with pytest.raises(BadRecord):
        encode(1, 1, 1, 0, record)
