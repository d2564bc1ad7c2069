"""Admission policies through the request machine: what they refuse, warn of and change, in Kubernetes' words."""

import pytest

from steersman.api.access.user import User
from steersman.api.errors import ApiError
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.serve.memory import MemoryBackend

GROUP = "admissionregistration.k8s.io"
DEPLOYMENTS = [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["deployments"]}]  # fmt: skip
CONFIGS = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]
ME = User("me", ("system:authenticated",))


class Cluster:
    """A control plane with some policies."""

    def __init__(self):
        self.backend = MemoryBackend()
        self.backend.bootstrap()

    def send(self, verb, kind, name, body=None, namespace="", part="", group="", **options):
        key = Key(group, kind, namespace, name)
        return self.backend.write_now(Request(verb, key, body, part, "me", "me", self.backend.now(), options))

    def install(self, kind, name, spec):
        body = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        return self.send("create", kind, name, body, group=GROUP)

    def policy(self, name="p", binding=None, **spec):
        spec = {"matchConstraints": {"resourceRules": CONFIGS}, **spec}
        self.install("ValidatingAdmissionPolicy", name, spec)
        bound = {"policyName": name, "validationActions": ["Deny"], **(binding or {})}
        self.install("ValidatingAdmissionPolicyBinding", f"{name}-b", bound)

    def mutation(self, *mutations, name="m", binding=None, **spec):
        mutations = [
            {"patchType": kind, ("jsonPatch" if kind == "JSONPatch" else "applyConfiguration"): {"expression": text}}
            for kind, text in mutations
        ]
        spec = {
            "matchConstraints": {"resourceRules": [{**CONFIGS[0], "operations": ["CREATE", "UPDATE"]}]},
            "reinvocationPolicy": "Never",
            "mutations": mutations,
            **spec,
        }
        self.install("MutatingAdmissionPolicy", name, spec)
        self.install("MutatingAdmissionPolicyBinding", f"{name}-b", {"policyName": name, **(binding or {})})

    def config(self, data=None, name="c", namespace="default", **options):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
        body["metadata"] |= options.pop("meta", {})
        if data:
            body["data"] = data
        return self.send("create", "ConfigMap", name, body, namespace, **options)

    def refusal(self, *args, **kwargs):
        with pytest.raises(ApiError) as caught:
            self.config(*args, **kwargs)
        return caught.value


@pytest.fixture
def cluster():
    return Cluster()


def test_a_policy_denies_in_kubernetes_words(cluster):
    cluster.policy(validations=[{"expression": "size(object.data) < 2", "message": "too much"}])
    cluster.config({"a": "1"})
    error = cluster.refusal({"a": "1", "b": "2"}, "d")
    text = "ValidatingAdmissionPolicy 'p' with binding 'p-b' denied request: too much"
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.message == f'configmaps "d" is forbidden: {text}'
    assert error.status()["details"] == {"name": "d", "kind": "configmaps", "causes": [{"message": text}]}


@pytest.mark.parametrize(
    "validation,told",
    [
        ({}, "failed expression: size(object.data) < 1"),
        ({"messageExpression": "'has ' + string(size(object.data))"}, "has 1"),
        ({"messageExpression": "string(object.nope)", "message": "m"}, "m"),
        ({"messageExpression": "'a\\nb'", "message": "m"}, "m"),
    ],
)
def test_messages(cluster, validation, told):
    cluster.policy(validations=[{"expression": "size(object.data) < 1", **validation}])
    assert cluster.refusal({"a": "1"}).message.endswith(f"denied request: {told}")


@pytest.mark.parametrize("reason,code", [("Forbidden", 403), ("Invalid", 422), ("RequestEntityTooLarge", 413)])
def test_reasons_have_codes(cluster, reason, code):
    cluster.policy(validations=[{"expression": "false", "reason": reason}])
    error = cluster.refusal()
    assert (error.code, error.reason) == (code, reason)


def test_warnings_and_audits_let_pass(cluster):
    cluster.policy(validations=[{"expression": "false"}], binding={"validationActions": ["Warn", "Audit"]})
    assert cluster.config().warnings == (
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p-b': failed expression: false",
    )


def test_an_error_of_the_evaluation_is_what_the_failure_policy_says(cluster):
    cluster.policy(validations=[{"expression": "object.nope == 1"}])
    told = "expression 'object.nope == 1' resulted in error: no such key: nope"
    assert told in cluster.refusal().message
    loose = Cluster()
    loose.policy(validations=[{"expression": "object.nope == 1"}], failurePolicy="Ignore")
    loose.config()


def test_match_conditions_come_first(cluster):
    conditions = [{"name": "mine", "expression": "object.metadata.name.startsWith('x')"}]
    cluster.policy(validations=[{"expression": "false"}], matchConditions=conditions)
    cluster.config(name="a")
    assert "denied" in cluster.refusal(name="xa").message


def test_variables_are_found_in_order_and_lazily(cluster):
    variables = [
        {"name": "keys", "expression": "object.data.map(k, k)"},
        {"name": "bad", "expression": "object.nope"},
        {"name": "first", "expression": "variables.keys[0]"},
    ]
    validations = [{"expression": "variables.first == 'a'"}, {"expression": "true || variables.bad == 1"}]
    cluster.policy(variables=variables, validations=validations)
    cluster.config({"a": "1"})
    assert "variables.first" in cluster.refusal({"b": "1"}, "d").message


def test_the_request_and_its_namespace_are_seen(cluster):
    expression = """
        request.operation == 'CREATE' && request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps'
        && request.userInfo.username == 'me' && request.name == 'c' && request.namespace == 'default'
        && oldObject == null && namespaceObject.metadata.name == 'default' && !request.dryRun
    """
    cluster.policy(validations=[{"expression": expression}])
    cluster.config(user=ME)


def test_updates_and_deletes_see_the_old_object(cluster):
    rule = "request.operation != 'UPDATE' || object.data.n >= oldObject.data.n"
    cluster.policy(
        validations=[{"expression": rule}, {"expression": "request.operation != 'DELETE' || object == null"}]
    )
    cluster.config({"n": "2"})
    with pytest.raises(ApiError, match="failed expression"):
        cluster.send("patch", "ConfigMap", "c", {"data": {"n": "1"}}, "default")
    cluster.send("delete", "ConfigMap", "c", None, "default")


def test_bindings_and_selectors_narrow_a_policy(cluster):
    resources = {"namespaceSelector": {"matchLabels": {"env": "prod"}}, "objectSelector": {"matchLabels": {"a": "b"}}}
    cluster.policy(validations=[{"expression": "false"}], binding={"matchResources": resources})
    for name, labels in (("prod", {"env": "prod"}), ("test", {})):
        cluster.send("create", "Namespace", name, {"metadata": {"name": name, "labels": labels}})
    labelled = {"labels": {"a": "b"}}
    cluster.config(namespace="test", meta=labelled)
    cluster.config(namespace="prod")
    assert "denied" in cluster.refusal(namespace="prod", name="d", meta=labelled).message


def test_excluded_resources_and_names(cluster):
    match = {"resourceRules": CONFIGS, "excludeResourceRules": [{**CONFIGS[0], "resourceNames": ["free"]}]}
    cluster.policy(validations=[{"expression": "false"}], matchConstraints=match)
    cluster.config(name="free")
    assert "denied" in cluster.refusal(name="other").message


def test_params_come_from_the_binding(cluster):
    cluster.config({"max": "1"}, "limits")
    cluster.policy(
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        validations=[{"expression": "!has(object.data) || size(object.data) <= int(params.data.max)"}],
        binding={"paramRef": {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}},
    )
    cluster.config({"a": "1"}, "one")
    assert "failed expression" in cluster.refusal({"a": "1", "b": "2"}, "two").message


def test_params_that_are_missing(cluster):
    cluster.policy(
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        validations=[{"expression": "true"}],
        binding={"paramRef": {"name": "gone", "namespace": "default", "parameterNotFoundAction": "Deny"}},
    )
    told = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    assert told in cluster.refusal().message


def test_the_authorizer_answers_by_rbac(cluster):
    rule = "authorizer.group('').resource('configmaps').namespace('default').check('deletecollection').allowed()"
    both = f"{rule} && authorizer.requestResource.check('create').allowed()"
    cluster.policy(validations=[{"expression": both, "message": "not yours"}])
    assert "not yours" in cluster.refusal(user=ME).message
    cluster.config(user=User("root", ("system:masters",)))


def test_hostile_expressions_are_cut_off(cluster):
    cluster.policy(validations=[{"expression": "object.data.all(a, object.data.all(b, object.data.all(c, true)))"}])
    error = cluster.refusal({f"k{n}": "v" for n in range(300)})
    assert "actual cost limit exceeded" in error.message


def test_policies_do_not_judge_policies(cluster):
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]
    cluster.policy(validations=[{"expression": "false"}], matchConstraints={"resourceRules": everything})
    assert "denied" in cluster.refusal().message
    cluster.send("delete", "ValidatingAdmissionPolicyBinding", "p-b", None, group=GROUP)
    cluster.config()


# -- mutations -------------------------------------------------------------------------------------------------


def test_an_apply_configuration_is_merged(cluster):
    text = "Object{metadata: Object.metadata{labels: {'team': 'a'}}, data: {'added': object.metadata.name}}"
    cluster.mutation(("ApplyConfiguration", text))
    obj = cluster.config({"k": "v"}).obj.value
    assert obj["metadata"]["labels"] == {"team": "a"} and obj["data"] == {"k": "v", "added": "c"}
    assert [entry["manager"] for entry in cluster.config(name="d").obj.value["metadata"].get("managedFields", ())] in (
        [],
        ["me"],
    )


def test_a_json_patch_is_applied(cluster):
    text = """[JSONPatch{op: 'test', path: '/data/k', value: 'v'},
               JSONPatch{op: 'add', path: '/metadata/labels', value: {'a/b': 'x'}},
               JSONPatch{op: 'replace', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'y'}]"""
    cluster.mutation(("JSONPatch", text))
    assert cluster.config({"k": "v"}).obj.value["metadata"]["labels"] == {"a/b": "y"}


def test_mutations_run_in_order_and_variables_see_the_last(cluster):
    add = "Object{data: {'n': string(int(variables.n) + 1)}}"
    cluster.mutation(
        ("ApplyConfiguration", add),
        ("ApplyConfiguration", add),
        variables=[{"name": "n", "expression": "object.data.n"}],
    )
    assert cluster.config({"n": "1"}).obj.value["data"]["n"] == "3"


@pytest.mark.parametrize(
    "kind,text,told",
    [
        ("ApplyConfiguration", "Object{metadata: Object.other{name: 'x'}}", "type mismatch: unexpected type name"),
        ("ApplyConfiguration", "Object{metadata: Object.metadata{nope: Object.metadata.nope{}}}", ""),
        ("ApplyConfiguration", "object", "must evaluate to Object but got dyn"),
        ("JSONPatch", "[JSONPatch{op: 'remove', path: '/nope'}]", "denied request"),
        ("JSONPatch", "[1]", "must evaluate to list(JSONPatch) but got list(int)"),
        ("JSONPatch", "[JSONPatch{op: 'add', pathh: '/nope'}]", "undefined field 'pathh'"),
        ("ApplyConfiguration", "Object{metadata: Object.metadata{finalizers: ['example.com/a']}}", ""),
    ],
)
def test_what_a_mutation_cannot_do(cluster, kind, text, told):
    def act():
        cluster.mutation((kind, text))
        cluster.config({"k": "v"})

    if told:
        with pytest.raises(ApiError) as caught:
            act()
        assert told in str(caught.value.message)
    else:
        act()


def test_atomic_lists_are_not_mutated(cluster):
    pods = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    text = "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'c', args: ['x']}]}}"
    cluster.mutation(("ApplyConfiguration", text), matchConstraints={"resourceRules": pods})
    body = {"metadata": {"name": "w"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    with pytest.raises(ApiError, match="may not mutate atomic arrays, maps or structs") as caught:
        cluster.send("create", "Pod", "w", body, "default")
    assert caught.value.reason == "Invalid"
    assert caught.value.message.startswith("policy 'm' with binding 'm-b' denied request: error applying patch")


def test_lists_of_maps_are_merged_by_their_keys(cluster):
    pods = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    text = """Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'side', image: 'i'}],
                     containers: [Object.spec.containers{name: 'c', imagePullPolicy: 'Never'}]}}"""
    cluster.mutation(("ApplyConfiguration", text), matchConstraints={"resourceRules": pods})
    body = {
        "metadata": {"name": "w"},
        "spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]},
    }
    spec = cluster.send("create", "Pod", "w", body, "default").obj.value["spec"]
    assert [c["name"] for c in spec["initContainers"]] == ["side"]
    assert [(c["name"], c["image"], c["imagePullPolicy"]) for c in spec["containers"]] == [
        ("c", "i", "Never"),
        ("d", "i", "Always"),
    ]


def test_without_policies_nothing_of_them_is_run(cluster, monkeypatch):
    from steersman.api.admission import extension

    monkeypatch.setattr(extension.Later, "made", lambda self: pytest.fail("asked for nothing"))
    cluster.config()


# -- what is written -------------------------------------------------------------------------------------------


def test_defaults_are_filled_in(cluster):
    cluster.policy(validations=[{"expression": "true"}])
    spec = cluster.backend.store.get(Key(GROUP, "ValidatingAdmissionPolicy", "", "p")).value["spec"]
    assert spec["failurePolicy"] == "Fail"
    assert spec["matchConstraints"] == {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "resourceRules": [{**CONFIGS[0], "scope": "*"}],
    }


@pytest.mark.parametrize(
    "change,field,told",
    [
        (
            {"validations": [{"expression": "foo("}]},
            "validations[0].expression",
            "compilation failed: ERROR: <input>:1:5",
        ),
        ({"validations": [{"expression": "1"}]}, "validations[0].expression", "must evaluate to bool but got int"),
        ({"validations": []}, "validations", "validations or auditAnnotations must contain at least one item"),
        ({"validations": [{"expression": " "}]}, "validations[0].expression", "expression is not specified"),
        ({"validations": [{"expression": "true", "message": "a\nb"}]}, "validations[0].message", "line breaks"),
        ({"validations": [{"expression": "true", "reason": "No"}]}, "validations[0].reason", "Unsupported value"),
        (
            {"validations": [{"expression": "params == 1"}]},
            "validations[0].expression",
            "undeclared reference to 'params'",
        ),
        ({"variables": [{"name": "a-b", "expression": "1"}]}, "variables[0].name", "must be a valid CEL identifier"),
        ({"variables": [{"name": "a", "expression": "variables.b"}]}, "variables[0].expression", "undefined field 'b'"),
        (
            {"matchConditions": [{"name": "a", "expression": "1"}]},
            "matchConditions[0].expression",
            "must evaluate to bool",
        ),
        ({"matchConstraints": {}}, "matchConstraints.resourceRules", "Required value"),
        ({"failurePolicy": "Maybe"}, "failurePolicy", 'supported values: "Fail", "Ignore"'),
    ],
)
def test_policies_that_are_wrong_are_refused_with_a_path(cluster, change, field, told):
    with pytest.raises(ApiError) as caught:
        cluster.policy(**{"validations": [{"expression": "true"}], **change})
    assert caught.value.code == 422
    causes = {cause.field: cause.message for cause in caught.value.causes}
    assert told in causes[f"spec.{field}"], causes


@pytest.mark.parametrize(
    "binding,field,told",
    [
        ({"validationActions": []}, "validationActions", "at least one validation action is required"),
        ({"validationActions": ["Deny", "Warn"]}, "validationActions", "must not contain both Deny and Warn"),
        ({"paramRef": {}}, "paramRef", "one of name or selector must be specified"),
        ({"policyName": ""}, "policyName", "Required value"),
    ],
)
def test_bindings_that_are_wrong_are_refused(cluster, binding, field, told):
    with pytest.raises(ApiError) as caught:
        cluster.policy(validations=[{"expression": "true"}], binding=binding)
    assert told in {cause.field: cause.message for cause in caught.value.causes}[f"spec.{field}"]


@pytest.mark.parametrize(
    "change,field,told",
    [
        ({"name": "short"}, "name", "should be a domain with at least three segments separated by dots"),
        ({"sideEffects": "Some"}, "sideEffects", 'supported values: "None", "NoneOnDryRun"'),
        ({"timeoutSeconds": 31}, "timeoutSeconds", "the timeout value must be between 1 and 30 seconds"),
        ({"clientConfig": {}}, "clientConfig", "exactly one of url or service is required"),
        ({"clientConfig": {"url": "http://a"}}, "clientConfig.url", "'https' is the only allowed URL scheme"),
        ({"clientConfig": {"url": "https://a\r\nb: c/"}}, "clientConfig.url", "invalid control character in URL"),
        ({"admissionReviewVersions": ["v9"]}, "admissionReviewVersions", "must include at least one of v1, v1beta1"),
        ({"rules": [{**CONFIGS[0], "operations": []}]}, "rules[0].operations", "Required value"),
        ({"rules": [{**CONFIGS[0], "resources": ["*", "pods"]}]}, "rules[0].resources", "if '*' is present"),
        (
            {"matchConditions": [{"name": "a", "expression": "x"}]},
            "matchConditions[0].expression",
            "undeclared reference",
        ),
    ],
)
def test_webhooks_that_are_wrong_are_refused(cluster, change, field, told):
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://a"},
        "rules": CONFIGS,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **change,
    }
    body = {"metadata": {"name": "w"}, "webhooks": [hook]}
    with pytest.raises(ApiError) as caught:
        cluster.send("create", "ValidatingWebhookConfiguration", "w", body, group=GROUP)
    assert told in {cause.field: cause.message for cause in caught.value.causes}[f"webhooks[0].{field}"]
