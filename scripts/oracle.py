"""Builds the real control plane (kube-apiserver, etcd, …) that Steersman is compared with.

    scripts/oracle.py OUT [NAME ...]      builds into OUT/bin; OUT must lie outside the repository

Everything comes from the Go module proxy: `k8s.io/kubernetes` at VERSION with its staging modules at the version that
belongs to it, and the etcd server that its go.mod names. The first build of kube-apiserver takes 10 to 30 minutes on
two cores; a name that is there already is not built again. Needs Go (the version in the module's go.mod) in PATH.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

VERSION: Final = "1.36.0"
"""The release that Steersman implements (`serve.documents.version`)."""

MODULE: Final = "k8s.io/kubernetes"
PACKAGES: Final = {
    "kube-apiserver": f"{MODULE}/cmd/kube-apiserver",
    "etcd": "go.etcd.io/etcd/server/v3",
    "kubectl": f"{MODULE}/cmd/kubectl",
    "kube-scheduler": f"{MODULE}/cmd/kube-scheduler",
    "kube-controller-manager": f"{MODULE}/cmd/kube-controller-manager",
}
STAGED: Final = re.compile(r"^\s*(\S+) => \./staging/src/\S+$", re.M)
REPOSITORY: Final = Path(__file__).resolve().parent.parent


def main() -> None:
    """Builds what is asked for; the exit code is 2 when it cannot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PACKAGES))
    options = parser.parse_args()
    out = options.out.resolve()
    unknown = [name for name in options.names if name not in PACKAGES]
    if unknown:
        parser.error(f"{unknown[0]} is not known; choose from {', '.join(PACKAGES)}")
    if out.is_relative_to(REPOSITORY):
        parser.error(f"{out} lies in the repository; choose a folder outside")
    if shutil.which("go") is None:
        parser.error("go is not in PATH; install Go 1.26 or newer")
    module = write_module(out)
    for name in options.names or PACKAGES:
        build(module, name, out / "bin" / name)


def write_module(out: Path) -> Path:
    """A Go module that requires Kubernetes with its staging modules replaced by their published versions.

    In `k8s.io/kubernetes` they are `v0.0.0 => ./staging/…`, which a published module does not contain.
    """
    folder = out / "module"
    folder.mkdir(parents=True, exist_ok=True)
    fetched = go(out, "mod", "download", "-json", f"{MODULE}@v{VERSION}", capture=True)
    original = Path(json.loads(fetched)["GoMod"]).read_text()
    staged = STAGED.findall(original)
    version = "v0" + VERSION.removeprefix("1")
    replaced = "\n".join(f"\t{path} => {path} {version}" for path in staged)
    body = STAGED.sub("", original)
    body = re.sub(r"^replace \(\s*\)", "", body, flags=re.M)
    body = body.replace(f"module {MODULE}", "module oracle", 1)
    body += f"\nrequire {MODULE} v{VERSION}\n\nreplace (\n{replaced}\n)\n"
    (folder / "go.mod").write_text(body)
    return folder


def build(module: Path, name: str, target: Path) -> None:
    """One static binary at `target`, which says the version it was built from."""
    if target.exists():
        print(f"{name}: {target} is there")
        return
    major, minor, _ = VERSION.split(".")
    stamp = {"gitVersion": f"v{VERSION}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    flags = " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in stamp.items())
    print(f"{name}: building from {PACKAGES[name]}", flush=True)
    partial = target.with_suffix(".part")
    go(module, "build", "-mod=mod", "-p=2", "-trimpath", f"-ldflags=-s -w {flags}", "-o", str(partial), PACKAGES[name])
    partial.rename(target)


def go(folder: Path, *arguments: str, capture: bool = False) -> str:
    """Runs go at the lowest priority; its output. Exits with 2 when it fails."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    done = subprocess.run(
        ["nice", "-n", "19", "go", *arguments],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE if capture else None,
        check=False,
    )
    if done.returncode:
        print(f"go {' '.join(arguments[:2])} failed", file=sys.stderr)
        raise SystemExit(2)
    return done.stdout or ""


if __name__ == "__main__":
    main()
