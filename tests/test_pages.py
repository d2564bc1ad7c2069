"""The pages: tests that they show pass as pasted, tables are complete, links lead somewhere."""

import re
import subprocess
import sys

from steersman.cli.kubectl import find_kubectl
from steersman.controllers.builtin import BY_NAME, named
from steersman.run.embed import Plane
from tests.source import ROOT

PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def snippets():
    """The Python tests that the two pages show, but for the README's check (tests/check/test_docs.py runs it)."""
    shown = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return [*shown, *(s for s in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "control_plane" in s)]


def test_every_snippet_passes_as_pasted(tmp_path):
    shown = snippets()
    assert len(shown) >= 10
    for number, text in enumerate(shown):
        (tmp_path / f"test_{number}.py").write_text(text, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert f"{len(shown)} passed" in done.stdout  # none is skipped, none is no test


def test_what_a_plane_has_is_in_the_table():
    rows = "\n".join(line.split(" | ")[0] for line in PAGE.splitlines() if line.startswith("| `"))
    for name in (*vars(Plane), "client", "kubeconfig", "url"):
        assert name.startswith("_") or re.search(rf"`{name}\b", rows), name


def test_the_workspace_that_the_page_makes(steersman_server):
    body = re.search(r"kubectl create -f - <<END\n(.*?)END\n", PAGE, re.DOTALL).group(1)
    kubectl = [find_kubectl(), f"--kubeconfig={steersman_server.kubeconfig}"]
    subprocess.run([*kubectl, "create", "-f", "-"], input=body, text=True, check=True)
    there = [*kubectl, "--server", f"{steersman_server.url}/clusters/mine", "get", "nodes", "-o", "name"]
    assert subprocess.run(there, capture_output=True, text=True, check=True).stdout.split() == ["node/node-0"]
    subprocess.run([*kubectl, "delete", "workspace", "mine"], check=True)


def test_the_simulations_give_the_reports_that_are_shown():
    """But for the last two lines: the real time, and a digest that differs from version to version."""
    page = (ROOT / "docs" / "simulate.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\$ steersman (simulate examples/.*)\n((?s:.*?))^1m58s", page, re.MULTILINE)
    assert len(shown) == 2
    for command, report in shown:
        words = [sys.executable, "-m", "steersman", *command.split()]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(report), done.stdout


def test_every_controller_is_in_the_table():
    page = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")
    table = page.partition("## Which controllers there are")[2].partition("\nThese of kube-controller-manager")[0]
    told = [name for row in table.splitlines() if row.startswith("| `") for name in re.findall(r"`(.*?)`", row)]
    assert {named(name) for name in told} == set(BY_NAME.values())


def test_every_page_is_linked_from_the_readme():
    for page in (ROOT / "docs").iterdir():
        assert f"(docs/{page.name})" in README, page.name


def test_no_link_is_dead():
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for link, anchor in re.findall(r"\]\(([^)#:]*)(#[^)]*)?\)", path.read_text(encoding="utf-8")):
            target = path.parent / link if link else path
            assert target.exists(), f"{path.name}: {link}"
            if anchor:
                assert anchor[1:] in anchors(target), f"{path.name}: {link}{anchor}"


def anchors(page):
    """What can be linked to in a page, as code hosts make it of headings."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
