"""Draws docs/check-page.png: the page of `steersman check --html`, as a browser shows it. Needs Chromium.

python scripts/draw_page.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PICTURE: Final = ROOT / "docs/check-page.png"
TARGET: Final = "examples/check/over_creation.py::test_naive_over_creates"
SIZE: Final = "1100,960"
"""Of the window, in pixels: as far as the end of the first run."""


def main() -> None:
    """Checks the example and takes a picture of its page."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("draw_page: needs chromium or google-chrome in the PATH")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        check = [sys.executable, "-m", "steersman", "check", TARGET, "--html", str(page), "--schedules", folder]
        subprocess.run(check, cwd=ROOT, stdout=subprocess.DEVNULL)  # it ends with 1: it finds what the example has
        taken = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={SIZE}"]
        subprocess.run([*taken, "--virtual-time-budget=3000", f"--screenshot={PICTURE}", page.as_uri()], check=True)


if __name__ == "__main__":
    main()
