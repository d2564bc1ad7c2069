"""Hooks that schemathesis loads (`tests.serve.schemas` runs it): watches end soon, and what an answer must be."""

import schemathesis

FOREVER = ("watch", "follow")


@schemathesis.hook
def before_call(context, case, kwargs):
    """A watch or a log that is followed ends after a second."""
    if case.query and any(name in case.query for name in FOREVER):
        case.query["timeoutSeconds"] = "1"
        case.query.pop("follow", None)


@schemathesis.check
def no_fault_of_the_server(context, response, case):
    """No code from 500 on but 504 for a revision that is not there yet; every error is a Status of its own code."""
    if response.status_code < 400:
        return
    if response.status_code == 404 and response.content.startswith(b"404 page not found"):
        return  # Go's words for a path that is nowhere
    assert response.status_code < 500 or response.status_code == 504, response.content[:500]
    if case.method.upper() != "HEAD" and response.headers.get("content-type", [""])[0].startswith("application/json"):
        status = response.json()
        assert status["kind"] == "Status" and status["code"] == response.status_code, response.content[:500]
