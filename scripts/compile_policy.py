"""Makes src/steersman/api/data/policy.json: the roles and bindings that a fresh kube-apiserver 1.36 creates.

    kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o yaml \
        -l kubernetes.io/bootstrapping=rbac-defaults > defaults.yaml
    python scripts/compile_policy.py defaults.yaml [MORE.yaml ...]

Any cluster of that release gives the same answer, and so do the lists of expected objects that the tests of Kubernetes
1.36.0 compare with (k8s.io/kubernetes, plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata, without the ones
for feature gates that are off by default). Only facts are kept: names, rules, subjects. What all objects have in
common (labels, annotation, apiVersion) is added by `steersman.api.policy`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import orjson
import yaml

TARGET = Path(__file__).parent.parent / "src/steersman/api/data/policy.json"
COMMON_LABEL = "kubernetes.io/bootstrapping"
RULE = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def facts_of(obj: dict[str, Any]) -> dict[str, Any]:
    """One object without what all have in common."""
    meta = obj["metadata"]
    out: dict[str, Any] = {"kind": obj["kind"], "name": meta["name"]}
    if meta.get("namespace"):
        out["namespace"] = meta["namespace"]
    labels = {name: text for name, text in meta.get("labels", {}).items() if name != COMMON_LABEL}
    if labels:
        out["labels"] = labels
    if "aggregationRule" in obj:  # its rules are collected from the roles it selects
        out["aggregate"] = [selector["matchLabels"] for selector in obj["aggregationRule"]["clusterRoleSelectors"]]
    elif obj["kind"].endswith("Role"):
        out["rules"] = [{name: rule[name] for name in RULE if rule.get(name)} for rule in obj["rules"] or ()]
    else:
        out["role"] = [obj["roleRef"]["kind"], obj["roleRef"]["name"]]
        out["subjects"] = [
            [subject["kind"], subject["name"], *([subject["namespace"]] if subject.get("namespace") else [])]
            for subject in obj.get("subjects") or ()
        ]
    return out


def main(paths: list[str]) -> int:
    """Compiles the files named."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for path in paths:
        for document in yaml.safe_load_all(Path(path).read_text()):
            for obj in document["items"]:
                facts = facts_of(obj)
                found[facts["kind"], facts.get("namespace", ""), facts["name"]] = facts
    if not found:
        print(__doc__, file=sys.stderr)
        return 2
    lines = [orjson.dumps(found[key]).decode() for key in sorted(found)]
    TARGET.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(f"{TARGET}: {len(lines)} objects, {TARGET.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
