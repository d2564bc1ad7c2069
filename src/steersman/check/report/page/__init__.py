"""The page: a saved run as one HTML file that needs nothing else, to be opened from a disk or attached to a build.

What the run holds came from other people's objects. It is embedded as JSON in which no `<` is left, and the script puts
it on the page as text only; the page's own policy allows this one script and style, no other and no network.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Final

from steersman.check.report.saved_run import SavedCommand, dumped

ESCAPES: Final = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))
"""What could end the element that holds the data, or mean anything in it."""


def page(command: SavedCommand) -> str:
    """The whole file."""
    here = files(__package__)
    style, script = (here.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    data = dumped(command)
    for mark, escaped in ESCAPES:
        data = data.replace(mark, escaped)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{_hash(script)}'; \
style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'">
<title>steersman check</title>
<style>{style}</style>
</head>
<body>
<noscript>This page shows a run of steersman check with a script of its own; switch scripts on.</noscript>
<script type="application/json" id="run">{data.decode()}</script>
<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    """As a Content-Security-Policy names an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
