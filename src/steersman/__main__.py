"""`python -m steersman`: the same as the `steersman` command."""

from steersman.cli import main

main()
