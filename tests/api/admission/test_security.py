"""PodSecurity: the levels by their texts, and what namespaces' labels do."""

from __future__ import annotations

import pytest

from steersman.api.rules.pod_security import told, violations
from tests.api.admission.scene import admitted
from tests.api.cluster import pod, refused

LABEL = "pod-security.kubernetes.io/"
SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def spec(context=None, pod_context=None, **more):
    container = {"name": "app", "image": "a:1", "securityContext": context or {}}
    out = {"containers": [container], **more}
    return {**out, "securityContext": pod_context} if pod_context else out


def judged(level, value, minor=36, notes=None):
    return told(violations(level, minor, notes or {}, value))


BASELINE = [
    (spec({"privileged": True}), 'privileged (container "app" must not set securityContext.privileged=true)'),
    (spec(hostNetwork=True, hostPID=True), "host namespaces (hostNetwork=true, hostPID=true)"),
    (spec(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), 'hostPath volumes (volume "v")'),
    (
        spec({"capabilities": {"add": ["SYS_ADMIN", "KILL"]}}),
        'non-default capabilities (container "app" must not include "SYS_ADMIN" in securityContext.capabilities.add)',
    ),
    (
        spec({"procMount": "Unmasked"}),
        'procMount (container "app" must not set securityContext.procMount to "Unmasked")',
    ),
    (
        spec({"seLinuxOptions": {"type": "x_t", "user": "u"}}),
        'seLinuxOptions (container "app" set forbidden securityContext.seLinuxOptions: type "x_t"; '
        "user may not be set)",
    ),
    (
        spec(pod_context={"seccompProfile": {"type": "Unconfined"}}),
        'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    (spec(pod_context={"sysctls": [{"name": "kernel.x", "value": "1"}]}), "forbidden sysctls (kernel.x)"),
    (
        spec({"windowsOptions": {"hostProcess": True}}),
        'hostProcess (container "app" must not set securityContext.windowsOptions.hostProcess=true)',
    ),
    (
        spec({"appArmorProfile": {"type": "Unconfined"}}),
        'forbidden AppArmor profile (container "app" must not set AppArmor profile type to "Unconfined")',
    ),
]


@pytest.mark.parametrize(("value", "text"), BASELINE)
def test_baseline(value, text):
    assert judged("baseline", value) == text
    assert judged("privileged", value) == ""


def test_ports_probes_and_several_containers():
    value = {
        "initContainers": [{"name": "i", "image": "a:1", "ports": [{"containerPort": 1, "hostPort": 8080}]}],
        "containers": [
            {"name": "a", "image": "a:1", "ports": [{"containerPort": 1, "hostPort": 80}]},
            {"name": "b", "image": "a:1", "livenessProbe": {"httpGet": {"host": "h", "port": 1}}},
        ],
    }
    assert judged("baseline", value) == (
        'hostPort (containers "i", "a" use hostPorts 80, 8080), '
        'probe or lifecycle host (container "b" uses probe or lifecycle host "h")'
    )
    assert "lifecycle" not in judged("baseline", value, 33)


RESTRICTED_TEXT = (
    'allowPrivilegeEscalation != false (container "app" must set securityContext.allowPrivilegeEscalation=false), '
    'unrestricted capabilities (container "app" must set securityContext.capabilities.drop=["ALL"]), '
    'runAsNonRoot != true (pod or container "app" must set securityContext.runAsNonRoot=true), '
    'seccompProfile (pod or container "app" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
    '"Localhost")'
)


def test_restricted_asks_for_what_a_plain_pod_does_not_say():
    assert judged("restricted", spec()) == RESTRICTED_TEXT
    assert judged("restricted", spec(SAFE)) == ""
    assert judged("restricted", spec({**SAFE, "runAsUser": 0})) == (
        'runAsUser=0 (container "app" must not set runAsUser=0)'
    )
    volumes = [{"name": "v", "nfs": {"server": "s", "path": "/"}}, {"name": "w", "emptyDir": {}}]
    assert judged("restricted", spec(SAFE, volumes=volumes)) == (
        'restricted volume types (volume "v" uses restricted volume type "nfs")'
    )
    assert "runAsNonRoot" not in judged("restricted", spec({**SAFE, "runAsNonRoot": None}, hostUsers=False))


@pytest.mark.parametrize(
    ("minor", "value", "text"),
    [
        (8, spec(), "allowPrivilegeEscalation"),
        (19, spec(), "seccompProfile"),
        (22, spec(), "unrestricted capabilities"),
        (23, spec({"runAsUser": 0}), "runAsUser=0"),
        (
            34,
            spec(livenessProbe=None) | {"containers": [{"name": "a", "livenessProbe": {"tcpSocket": {"host": "h"}}}]},
            "probe",
        ),
        (35, spec({"procMount": "Unmasked"}, hostUsers=False), "procMount"),
    ],
)
def test_checks_hold_from_their_version_on(minor, value, text):
    assert text in judged("restricted", value, minor)
    if minor != 35:  # there another check takes over
        assert text not in judged("restricted", value, minor - 1)


def test_older_versions_ask_for_less():
    assert "seccompProfile" not in judged("restricted", spec(), 18)
    assert "capabilities" not in judged("restricted", spec(), 21)
    assert "allowPrivilege" not in judged("restricted", spec(), 7)
    windows = spec({"runAsNonRoot": True}, os={"name": "windows"})
    assert judged("restricted", windows) == ""
    assert "allowPrivilege" in judged("restricted", windows, 24)
    note = {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}
    text = 'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")'
    assert judged("baseline", spec(), 18, note) == text
    assert judged("baseline", spec(), 19, note) == ""


# -- namespaces ----------------------------------------------------------------------------------------------------


def labelled(**labels):
    c = admitted()
    found = {LABEL + name.replace("_", "-"): value for name, value in labels.items()}
    c.merge("v1/Namespace", "shop", {"metadata": {"labels": found}})
    return c


def test_what_is_enforced_refuses_pods_and_warns_of_templates():
    c = labelled(enforce="restricted", enforce_version="v1.30")
    error = refused(c.create, "v1/Pod", "p", spec=pod())
    assert error.code == 403
    assert error.message == f'pods "p" is forbidden: violates PodSecurity "restricted:v1.30": {RESTRICTED_TEXT}'
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": spec()}
    reply = c.create("apps/v1/Deployment", "web", spec={"selector": {"matchLabels": labels}, "template": template})
    assert reply.warnings == (f'would violate PodSecurity "restricted:v1.30": {RESTRICTED_TEXT}',)
    assert c.create("v1/Pod", "p", spec=spec(SAFE)).warnings == ()


def test_a_warning_is_not_a_refusal_and_an_update_of_labels_is_not_judged():
    c = labelled(warn="baseline")
    reply = c.create("v1/Pod", "p", spec=spec(hostNetwork=True))
    assert reply.warnings == ('would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)',)
    assert c.merge("v1/Pod", "p", {"metadata": {"labels": {"a": "b"}}}).warnings == ()
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "b:2"}]
    assert len(c.json_patch("v1/Pod", "p", image).warnings) == 1


def test_labels_that_cannot_be_read_are_refused():
    c = admitted()
    labels = {LABEL + "enforce": "strict", LABEL + "warn-version": "1.2"}
    error = refused(c.merge, "v1/Namespace", "shop", {"metadata": {"labels": labels}})
    assert (error.code, [cause.field for cause in error.causes]) == (
        422,
        [f"metadata.labels[{LABEL}enforce]", f"metadata.labels[{LABEL}warn-version]"],
    )
    assert error.causes[0].message == 'Invalid value: "strict": must be one of privileged, baseline, restricted'


def test_a_level_that_is_raised_tells_of_the_pods_there_are():
    c = admitted()
    for name in ("b", "a"):
        c.create("v1/Pod", name, spec=spec({"privileged": True}))
    c.create("v1/Pod", "fine", spec=spec())
    reply = c.merge("v1/Namespace", "shop", {"metadata": {"labels": {LABEL + "enforce": "baseline"}}})
    assert reply.warnings == (
        'existing pods in namespace "shop" violate the new PodSecurity enforce level "baseline:latest"',
        "a (and 1 other pod): privileged",
    )
