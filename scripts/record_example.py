"""Makes examples/rollout.sktrace: runs a control plane, works on it with kubectl, records its journal.

    .venv/bin/python scripts/record_example.py

Takes half a minute of real time. Times and names differ from run to run, so the committed file is one of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from steersman.cli.demo import server
from steersman.cli.kubectl import find_kubectl

ROOT = Path(__file__).resolve().parent.parent
WEB = (ROOT / "examples/web.yaml").read_text()
STEPS = (
    WEB,
    WEB.replace("name: web\n", "name: api\n", 1).replace("app: web", "app: api").replace("replicas: 3", "replicas: 2"),
    WEB.replace("replicas: 3", "replicas: 8"),
    WEB.replace("replicas: 3", "replicas: 8").replace("web:1", "web:2"),
    WEB.replace("replicas: 3", "replicas: 4").replace("web:1", "web:2"),
)
"""Deployments as they are applied one after the other."""
PAUSE_SECONDS = 5.0


def main() -> int:
    """Runs the steps and records them."""
    kubectl = find_kubectl()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        with server(folder) as kubeconfig:
            environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
            for number, manifest in enumerate(STEPS):
                path = folder / f"{number}.yaml"
                path.write_text(manifest)
                subprocess.run([kubectl, "apply", "--server-side", "-f", path], env=environment, check=True)
                time.sleep(PAUSE_SECONDS)
            subprocess.run([kubectl, "delete", "deployment", "api"], env=environment, check=True)
            time.sleep(PAUSE_SECONDS)
        store, out = f"sqlite:{folder / 'steersman.db'}", ROOT / "examples/rollout.sktrace"
        return subprocess.call([sys.executable, "-m", "steersman", "record", "--store", store, "-o", str(out)])


if __name__ == "__main__":
    sys.exit(main())
