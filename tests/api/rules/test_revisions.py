"""ControllerRevisions: what a change of their data is told."""

from tests.serve.harness import in_loop
from tests.serve.plane import Plane


@in_loop
async def test_a_revision_that_loses_its_data_has_changed():
    plane, path = Plane(), "/apis/apps/v1/namespaces/default/controllerrevisions"
    made = (await plane.post(path, {"metadata": {"name": "r"}, "data": {"b": 1}, "revision": 1})).json
    for data, shown in (({"d": "x<y"}, r'{"d":"x\u003cy"}'), (None, "null")):
        body = {name: value for name, value in {**made, "data": data}.items() if value is not None}
        refused = (await plane.put(f"{path}/r", body, 422)).json
        told = f"data: Invalid value: {shown}: field is immutable"
        assert refused["message"] == f'ControllerRevision.apps "r" is invalid: {told}'
