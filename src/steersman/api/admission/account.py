"""ServiceAccount: every pod has an account, and a token of it where it wants one.

The name of the token's volume ends in five characters that Kubernetes draws for every pod; here they follow from
namespace and account, so that the pods of one template go on sharing their spec. Only the pod's own
volumes must differ.
Source of the facts: kubernetes `plugin/pkg/admission/serviceaccount`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from xxhash import xxh3_64_digest

from steersman.api import errors
from steersman.api.admission.edit import Edits, joined, notes_of, spec_of, with_part
from steersman.api.admission.plugin import CREATE, UPDATE, Answer, Attempt, Plugin
from steersman.api.filling import each
from steersman.api.names import name_suffix
from steersman.api.references import MIRROR, in_environment, secret_names
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY, Frozen, FrozenList, freeze

POD: Final = ("", "Pod")
ENFORCE: Final = "kubernetes.io/enforce-mountable-secrets"
TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
VOLUME: Final = "kube-api-access-"
MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
EXPIRATION: Final = 3607
"""Seconds; Kubernetes tells by the odd number that nobody chose it."""
SOURCES: Final = freeze(
    [
        {"serviceAccountToken": {"expirationSeconds": EXPIRATION, "path": "token"}},
        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
        {
            "downwardAPI": {
                "items": [
                    {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"},
                ]
            }
        },
    ]
)
DEFAULT_MODE: Final = 0o644


class ServiceAccount(Plugin):
    """See the module's text."""

    name = "ServiceAccount"
    kinds = (POD,)
    operations = (CREATE, UPDATE)
    subresources = ("", "ephemeralcontainers")

    def __init__(self, accounts_come: bool = False) -> None:
        """`accounts_come`: a controller makes the account `default` of every namespace. kube-apiserver waits for it
        for a second or two; here a pod of an account that is on its way is admitted at once."""
        self._edits = Edits()
        self._accounts_come = accounts_come

    def mutate(self, attempt: Attempt) -> Answer:
        """Names the account, mounts its token, and takes over its pull secrets."""
        if attempt.operation != CREATE or attempt.subresource:
            return None
        if MIRROR in notes_of(attempt):
            return self.validate(attempt)
        spec = spec_of(attempt)
        name = spec.get("serviceAccountName") or "default"
        account = self._account(attempt, name)
        automount = spec.get("automountServiceAccountToken")
        if automount is None:
            automount = _part(account, "automountServiceAccountToken")
        pull = tuple(str(ref.get("name")) for ref in _part(account, "imagePullSecrets") or ())
        how = (attempt.key.namespace, name, automount is not False, pull)
        judged = with_part(attempt, "spec", self._edits(spec, how, lambda spec: _with_account(spec, *how)))
        self.validate(attempt if judged is None else attempt._replace(body=judged.body))
        return judged

    def _account(self, attempt: Attempt, name: str) -> Object | None:
        namespace = attempt.key.namespace
        found = attempt.store.get(Key("", "ServiceAccount", namespace, name))
        if found is None and not (self._accounts_come and name == "default"):
            missing = f"serviceaccount {errors.quote(name)} not found"
            raise attempt.forbidden(f"error looking up service account {namespace}/{name}: {missing}")
        return found

    def validate(self, attempt: Attempt) -> Answer:
        """Refuses pods without an account, and secrets that the account may not use."""
        spec = spec_of(attempt)
        if attempt.operation == UPDATE and attempt.subresource != "ephemeralcontainers":
            return None
        if not attempt.subresource and MIRROR in notes_of(attempt):
            _judge_mirror(attempt, spec)
            return None
        name = spec.get("serviceAccountName")
        if not name:
            detail = f"no service account specified for pod {attempt.key.namespace}/{attempt.key.name}"
            raise attempt.forbidden(detail)
        account = self._account(attempt, name)
        if account is not None and (account.meta.value.get("annotations") or EMPTY).get(ENFORCE) in TRUE:
            groups = EPHEMERAL if attempt.subresource else CONTAINERS
            problem = _unmountable(account, spec, groups, whole=not attempt.subresource)
            if problem:
                raise attempt.forbidden(problem)
        return None


CONTAINERS: Final = (("initContainers", "init container"), ("containers", "container"))
EPHEMERAL: Final = (("ephemeralContainers", "ephemeral container"),)


def _part(account: Object | None, field: str) -> Any:
    return None if account is None or account.rest is None else account.rest.value.get(field)


def _with_account(spec: Frozen, namespace: str, name: str, automount: bool, pull: tuple[str, ...]) -> Frozen:
    if spec.get("serviceAccountName") != name or spec.get("serviceAccount") != name:
        spec = Frozen({**spec, "serviceAccountName": name, "serviceAccount": name})
    if automount:
        spec = _with_token(spec, namespace, name)
    if pull and not spec.get("imagePullSecrets"):
        spec = Frozen({**spec, "imagePullSecrets": FrozenList([Frozen({"name": secret}) for secret in pull])})
    return spec


def _with_token(spec: Frozen, namespace: str, name: str) -> Frozen:
    known = next((v["name"] for v in spec.get("volumes") or () if str(v.get("name", "")).startswith(VOLUME)), None)
    volume = known or VOLUME + name_suffix(xxh3_64_digest(f"{namespace}/{name}".encode()))
    mount = Frozen({"mountPath": MOUNT_PATH, "name": volume, "readOnly": True})

    def mounted(container: Frozen) -> Frozen:
        mounts = container.get("volumeMounts") or ()
        if any(found.get("mountPath") == MOUNT_PATH for found in mounts):
            return container
        return Frozen({**container, "volumeMounts": joined(mounts, mount)})

    after = each(each(spec, "initContainers", mounted), "containers", mounted)
    if after is spec or known is not None:
        return after
    projected = Frozen({"defaultMode": DEFAULT_MODE, "sources": SOURCES})
    token = Frozen({"name": volume, "projected": projected})
    return Frozen({**after, "volumes": joined(after.get("volumes"), token)})


def _judge_mirror(attempt: Attempt, spec: Mapping[str, Any]) -> None:
    if spec.get("serviceAccountName"):
        raise attempt.forbidden("a mirror pod may not reference service accounts")
    if next(secret_names(spec), None) is not None:
        raise attempt.forbidden("a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or EMPTY).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                raise attempt.forbidden("a mirror pod may not use ServiceAccountToken volume projections")


def _unmountable(
    account: Object, spec: Mapping[str, Any], groups: Iterable[tuple[str, str]], whole: bool
) -> str | None:
    """The first secret that the account does not list, in words."""
    allowed = {str(ref.get("name")) for ref in _part(account, "secrets") or ()}
    name = account.key.name
    tail = f"is not allowed because service account {name} does not reference that"
    for volume in spec.get("volumes") or () if whole else ():
        secret = (volume.get("secret") or EMPTY).get("secretName")
        if volume.get("secret") is not None and secret not in allowed:
            return f'volume with secret.secretName="{secret}" {tail} secret'
    for group, word in groups:
        for container in spec.get(group) or ():
            for secret, where in in_environment(container, "secret"):
                if secret not in allowed:
                    named = f"{word} {container.get('name')} with {where}"
                    return f'{named} referencing secret.secretName="{secret}" {tail} secret'
    pullable = {str(ref.get("name")) for ref in _part(account, "imagePullSecrets") or ()}
    for index, ref in enumerate(spec.get("imagePullSecrets") or () if whole else ()):
        if ref.get("name") not in pullable:
            return f'imagePullSecrets[{index}].name="{ref.get("name")}" {tail} imagePullSecret'
    return None
