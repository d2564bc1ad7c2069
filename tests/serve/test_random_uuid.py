"""Random UUIDs."""

from __future__ import annotations

import os
import uuid

from steersman.serve import random_uuid as drawing
from steersman.serve.random_uuid import BLOCK, random_uuid


def test_they_are_random_uuids_and_all_differ():
    texts = [random_uuid() for _ in range(2 * BLOCK + 1)]
    found = [uuid.UUID(text) for text in texts]
    assert [str(one) for one in found] == texts and len(set(texts)) == len(texts)
    assert {(one.version, one.variant) for one in found} == {(4, uuid.RFC_4122)}


def test_a_forked_process_draws_its_own():
    random_uuid()
    assert drawing._digits
    receives, sends = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(sends, random_uuid().encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(receives, 36).decode()
    assert theirs not in [random_uuid() for _ in range(BLOCK)]
