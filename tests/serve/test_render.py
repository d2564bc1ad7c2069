"""Answers whose bytes somebody compares."""

from tests.serve.harness import in_loop
from tests.serve.plane import Plane

REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"


@in_loop
async def test_a_revision_has_its_data_in_the_bytes_that_go_writes():
    """A DaemonSet controller that finds other ones makes a new revision, for ever."""
    data = {"spec": {"template": {"metadata": {"annotations": {"note": "<a & b>\u2028"}}, "$patch": "replace"}}}
    meta = {"name": "r"}
    body = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": meta, "data": data, "revision": 1}
    plane = Plane()
    made = await plane.post(REVISIONS, body)
    written = (
        b'"data":{"spec":{"template":{"$patch":"replace",'
        b'"metadata":{"annotations":{"note":"\\u003ca \\u0026 b\\u003e\\u2028"}}}}}'
    )
    assert made.json["data"] == data
    for answer in (made, await plane.get(f"{REVISIONS}/r"), await plane.get(REVISIONS)):
        assert written in answer.body
    assert written in (await plane.merge(f"{REVISIONS}/r", {"revision": 2})).body
