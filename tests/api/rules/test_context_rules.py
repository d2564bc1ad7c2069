"""Security contexts, and what an operating system does not have."""

from typing import Any

import pytest

from tests.api.test_validate import judge

AT = "spec.containers[0].securityContext"


def pod(context: Any = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", **({} if context is None else {"securityContext": context})}
    return {"containers": [container], **spec}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (pod({"runAsUser": 0}), []),
        (pod({"procMount": "Unmasked"}, hostUsers=False), []),
        (
            pod({"procMount": "Unmasked"}),
            [f'{AT}.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`'],
        ),
        (
            pod({"seccompProfile": {"type": "Localhost", "localhostProfile": "/x"}}),
            [f'{AT}.seccompProfile.localhostProfile: Invalid value: "/x": must be a relative path'],
        ),
        (
            pod({"seccompProfile": {"type": "RuntimeDefault", "localhostProfile": "x"}}),
            [
                f'{AT}.seccompProfile.localhostProfile: Invalid value: {{"Type":"RuntimeDefault",'
                '"LocalhostProfile":"x"}: can only be set when seccomp type is Localhost'
            ],
        ),
        (
            pod({"appArmorProfile": {"type": "Localhost"}}),
            [f"{AT}.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is Localhost"],
        ),
        (
            pod(securityContext={"sysctls": [{"name": "a"}, {"name": "a"}]}),
            ['spec.securityContext.sysctls[1].name: Duplicate value: "a"'],
        ),
        (
            pod({"windowsOptions": {}}, os={"name": "linux"}),
            [f"{AT}.windowsOptions: Forbidden: windows options cannot be set for a linux pod"],
        ),
        (
            pod({"privileged": True}, os={"name": "windows"}),
            [f"{AT}.privileged: Forbidden: cannot be set for a windows pod"],
        ),
        (pod(hostUsers=False, hostPID=True), ["spec.HostPID: Forbidden: when `hostUsers` is false"]),
    ],
)
def test_contexts(spec, told):
    assert judge("pod", "spec", spec) == told
