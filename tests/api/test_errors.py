"""The bodies below are what a kube-apiserver of release 1.36 sends for the same failure."""

import pickle

import pytest

from steersman.api import errors
from steersman.api.errors import Cause


def test_not_found_has_the_exact_shape_and_order():
    error = errors.not_found("deployments", "web", "apps")
    assert error.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'deployments.apps "web" not found',
        "reason": "NotFound",
        "details": {"name": "web", "group": "apps", "kind": "deployments"},
        "code": 404,
    }
    assert list(error.status()) == [
        *("kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code")
    ]
    assert isinstance(error, errors.NotFound)
    assert str(error) == 'deployments.apps "web" not found'


def test_core_resources_have_no_group_anywhere():
    error = errors.already_exists("pods", "a")
    assert error.message == 'pods "a" already exists'
    assert error.status()["details"] == {"name": "a", "kind": "pods"}
    assert (error.code, error.reason) == (409, "AlreadyExists")


def test_conflict_tells_to_try_again():
    error = errors.conflict("deployments", "web", group="apps")
    assert error.message == (
        'Operation cannot be fulfilled on deployments.apps "web": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert isinstance(error, errors.Conflict)


def test_invalid_with_one_cause():
    cause = Cause.invalid("spec.replicas", -1, "must be greater than or equal to 0")
    error = errors.invalid("Deployment", "web", [cause], "apps")
    assert error.message == (
        'Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    )
    assert error.code == 422
    assert error.status()["details"]["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "message": "Invalid value: -1: must be greater than or equal to 0",
            "field": "spec.replicas",
        }
    ]


def test_invalid_with_several_causes_uses_brackets_and_says_each_thing_once():
    first, second = Cause.required("a"), Cause.forbidden("b", "no")
    error = errors.invalid("Pod", "x", [first, second, first])
    assert error.message == 'Pod "x" is invalid: [a: Required value, b: Forbidden: no]'
    assert len(error.causes) == 3
    assert errors.invalid("Pod", "x", [first, first]).message == 'Pod "x" is invalid: a: Required value'
    assert errors.invalid("Pod", "x", []).message == 'Pod "x" is invalid'


def test_apply_conflict_with_one_cause():
    cause = Cause.manager_conflict("kubectl", ".spec.replicas", api_version="apps/v1")
    error = errors.apply_conflict([cause])
    assert error.message == ('Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas')
    assert error.status()["details"] == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "kubectl" using apps/v1',
                "field": ".spec.replicas",
            }
        ]
    }


def test_apply_conflicts_are_grouped_by_manager():
    causes = [
        Cause.manager_conflict("z", ".spec.a"),
        Cause.manager_conflict("hpa", ".spec.b", api_version="v1", subresource="scale"),
        Cause.manager_conflict("z", ".spec.c"),
    ]
    assert errors.apply_conflict(causes).message == (
        'Apply failed with 3 conflicts: conflicts with "hpa" with subresource "scale" using v1:\n'
        '- .spec.b\nconflicts with "z":\n- .spec.a\n- .spec.c'
    )


@pytest.mark.parametrize(
    ("error", "code", "reason", "message", "details"),
    [
        (errors.bad_request("no"), 400, "BadRequest", "no", None),
        (errors.unauthorized(), 401, "Unauthorized", "Unauthorized", None),
        (
            errors.forbidden("pods", "", 'User "u" cannot list resource "pods"'),
            403,
            "Forbidden",
            'pods is forbidden: User "u" cannot list resource "pods"',
            {"kind": "pods"},
        ),
        (
            errors.forbidden("pods", "a", "no"),
            403,
            "Forbidden",
            'pods "a" is forbidden: no',
            {"name": "a", "kind": "pods"},
        ),
        (errors.forbidden("", "", "no"), 403, "Forbidden", "forbidden: no", {}),
        (
            errors.method_not_allowed("bindings", "patch"),
            405,
            "MethodNotAllowed",
            'patch is not supported on resources of kind "bindings"',
            {"kind": "bindings"},
        ),
        (
            errors.unsupported_media_type(["application/json", "application/yaml"]),
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml",
            None,
        ),
        (errors.expired("too old"), 410, "Expired", "too old", None),
        (errors.gone("too old"), 410, "Gone", "too old", None),
        (
            errors.request_entity_too_large("limit is 1"),
            413,
            "RequestEntityTooLarge",
            "Request entity too large: limit is 1",
            None,
        ),
        (errors.too_many_requests("busy", 3), 429, "TooManyRequests", "busy", {"retryAfterSeconds": 3}),
        (errors.timeout("slow"), 504, "Timeout", "Timeout: slow", {}),
        (
            errors.internal("x"),
            500,
            "InternalError",
            "Internal error occurred: x",
            {"causes": [{"message": "x"}]},
        ),
    ],
)
def test_other_failures(error, code, reason, message, details):
    status = error.status()
    assert (status["code"], status["reason"], status["message"], status.get("details")) == (
        *(code, reason, message, details),
    )


def test_from_status_and_pickle_keep_everything():
    for error in (
        errors.invalid("Pod", "x", [Cause.required("a")]),
        errors.generate_name_conflict("pods", "x-"),
        errors.bad_request("no"),
        errors.gone("old"),
        errors.server_timeout("pods", "list"),
    ):
        for again in (errors.from_status(error.status()), pickle.loads(pickle.dumps(error))):
            assert again.status() == error.status()
            assert type(again) is type(error)


def test_from_status_of_an_unknown_reason_goes_by_the_code():
    assert isinstance(errors.from_status({"code": 404, "reason": "Odd"}), errors.NotFound)
    assert isinstance(errors.from_status({"code": 409}), errors.Conflict)
    assert isinstance(errors.from_status({"code": 599}), errors.InternalError)
    broken = {"code": "x", "details": {"causes": [1, {"field": 2}], "retryAfterSeconds": "y"}, "message": []}
    assert errors.from_status(broken).status()["code"] == 500


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        (Cause.invalid("f", 'a"b', "bad"), 'Invalid value: "a\\"b": bad'),
        (Cause.invalid("f", True, ""), "Invalid value: true"),
        (Cause.invalid("f", 2.0, ""), "Invalid value: 2"),
        (Cause.invalid("f", {"a": [1, None]}, "bad"), 'Invalid value: {"a":[1,null]}: bad'),
        (Cause.invalid("f", {1, 2}, "bad"), "Invalid value: <set>: bad"),
        (Cause.unsupported("f", "x", ["A", "B"]), 'Unsupported value: "x": supported values: "A", "B"'),
        (Cause.duplicate("f", "x"), 'Duplicate value: "x"'),
        (Cause.too_long("f", 63), "Too long: may not be more than 63 bytes"),
        (Cause.too_many("f", 3, 1), "Too many: 3: must have at most 1 item"),
    ],
)
def test_causes_show_values_as_kubernetes_does(cause, message):
    assert cause.message == message


def test_quoting_is_go_quoting():
    assert errors.quote("a\x00\x1b\n\t\\é\u200b\U000e0001") == '"a\\x00\\x1b\\n\\t\\\\é\\u200b\\U000e0001"'


def test_huge_and_cyclic_values_are_cut():
    cycle: list = []
    cycle.append(cycle)
    assert "<list>" in Cause.invalid("f", cycle, "bad").message
    assert len(Cause.invalid("f", "x" * 10**6, "bad").message) < 3000
    assert len(Cause.invalid("f", ["x"] * 10**5, "bad").message) < 3000
