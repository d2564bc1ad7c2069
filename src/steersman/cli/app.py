"""The command line: one verb a file. Each verb imports what it needs when it runs, so that help is quick.

A new verb is one function with typer's annotations (or, for a verb with verbs of its own, one `typer.Typer`) in a file
of its name, and its name in VERBS.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.metadata import version

VERBS = ("check", "inspect", "simulate", "record", "trace", "run", "demo")
ABOUT = "A control plane you can check, simulate and run."


def main() -> None:
    """The `steersman` command. Ctrl-C before a verb has begun ends it without a word, as it does later."""
    try:
        _main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"steersman {version('steersman')}")
        return
    import typer

    app = typer.Typer(
        name="steersman",
        help=ABOUT,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        epilog="steersman --version tells the version; steersman VERB --help tells more.",
    )

    @app.callback()
    def _top() -> None:
        """Keeps verbs as verbs, even where there is only one."""

    _top.__doc__ = ABOUT
    for verb in VERBS:
        if importlib.util.find_spec(f"steersman.cli.{verb}") is not None:
            function = getattr(importlib.import_module(f"steersman.cli.{verb}"), verb)
            if isinstance(function, typer.Typer):  # a verb with verbs of its own
                app.add_typer(function, name=verb)
            else:
                app.command(verb)(function)
    app()
