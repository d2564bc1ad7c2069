"""Valid objects of every kind with places changed, in every encoding, at every verb and subresource: no fault of the
server, and a store that is whole afterwards."""

import asyncio
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.serve.served import parts_of
from tests.serve.mutate import APPLY, STRATEGIC, WIDGETS, Fuzz
from tests.serve.plane import Plane, deployment
from tests.serve.storm import CRDS, fire, storm


@pytest.mark.parametrize("seed", range(3))
def test_a_storm_leaves_a_whole_store(seed):
    codes = asyncio.run(storm(seed, 1_000))
    assert codes[200] > 150 and codes[201] > 20 and codes[400] > 100 and codes[422] > 50, codes


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False))
def test_no_request_is_a_fault_of_the_server(source):
    plane = PLANES[0]
    asyncio.run(fire(plane, Fuzz(source).request(plane.app._current()[0])))


def test_there_is_something_to_spoil_of_every_kind():
    served, samples = PLANES[0].app._current()[0], Fuzz(None).samples
    kinds = [kind for group, versions in served.groups.items() for kind in served.kinds_of(group, versions[0])]
    missing = {kind.kind for kind in kinds if "update" in kind.verbs and (kind.api_version, kind.kind) not in samples}
    assert missing == set()
    assert any(parts_of(kind) for kind in kinds)


def a_plane():
    plane = Plane()
    asyncio.run(plane.post(CRDS, WIDGETS))
    return plane


PLANES = [a_plane()]
"""One for all examples: what earlier ones wrote is more to stumble over."""


@pytest.mark.parametrize("media", [STRATEGIC, APPLY])
def test_a_long_list_costs_its_length_and_not_its_square(media):
    plane = Plane()
    path = "/apis/apps/v1/namespaces/default/deployments"

    def long(prefix, count):
        made = deployment()
        made["spec"]["template"]["spec"]["containers"][0]["env"] = [
            {"name": f"{prefix}{number}", "value": "v"} for number in range(count)
        ]
        return made

    async def run():
        await plane.post(path, long("A", 15_000))
        start = time.perf_counter()
        target = f"{path}/web?fieldManager=x&force=true" if media == APPLY else f"{path}/web"
        await plane.ask("PATCH", target, long("B", 15_000), 200, content_type=media)
        return time.perf_counter() - start

    assert asyncio.run(run()) < 5
