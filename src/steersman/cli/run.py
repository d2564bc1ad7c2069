"""`steersman run`: a control plane that kubectl works against."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

MAX_VIRTUAL_NODES = 5_000
"""As many nodes as Kubernetes itself supports in one cluster."""

Elsewhere = Annotated[
    str,
    typer.Option(
        metavar="NAMES",
        help="What somebody else runs, with commas: names of kube-controller-manager's controllers (* for all), "
        "kube-scheduler, kubelet.",
    ),
]
Believed = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Whose tokens are believed besides: an AuthenticationConfiguration of apiserver.config.k8s.io/v1.",
    ),
]


def run(
    listen: Annotated[
        str,
        typer.Option(
            metavar="ADDR", help="HOST:PORT, or PORT on 127.0.0.1. By default 6443, or a free one if it is taken."
        ),
    ] = "",
    kubeconfig: Annotated[
        Path, typer.Option(metavar="PATH", help="Where the credential for kubectl goes; mode 0600.")
    ] = Path("steersman.kubeconfig"),
    store: Annotated[
        str, typer.Option(metavar="URL", help="sqlite:PATH, or memory: for a store that goes with the process.")
    ] = "sqlite:steersman.db",
    virtual_nodes: Annotated[
        int, typer.Option(metavar="N", min=0, max=MAX_VIRTUAL_NODES, help="Nodes that run pods in appearance only.")
    ] = 0,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let --listen be reachable from outside.")
    ] = False,
    disable_controllers: Elsewhere = "",
    audit_log: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write down who did what: a JSON object a line; mode 0600.")
    ] = None,
    audit_policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What is written: a Policy of audit.k8s.io/v1. By default Metadata of all."),
    ] = None,
    authentication_config: Believed = None,
    cluster_cidr: Annotated[
        str, typer.Option(metavar="CIDRS", help="Addresses of pods: every node gets a block, of IPv4, IPv6, or each.")
    ] = "",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Runs a control plane until Ctrl-C: API server, controllers, scheduler, virtual nodes; durable in --store.

    Exit codes: 0 stopped as asked, 1 stopped by a failure of the store, 2 it could not start.
    """
    from steersman.controllers.builtin import BY_NAME
    from steersman.run.daemon import Settings, disabling, sharing_out
    from steersman.run.daemon import run as run_daemon
    from steersman.run.load import StartError

    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)-7s %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    try:
        controllers, without = disabling(disable_controllers)
        elsewhere = [name for name, cls in BY_NAME.items() if cls not in controllers]
        controllers = sharing_out(controllers, cluster_cidr)
    except StartError as error:
        _tell(f"steersman run: {error}")
        raise typer.Exit(2) from None
    settings = Settings(
        listen,
        kubeconfig,
        store,
        virtual_nodes,
        allow_remote,
        controllers,
        elsewhere=elsewhere,
        without=without,
        audit_log=audit_log,
        audit_policy=audit_policy,
        authentication=authentication_config,
    )
    raise typer.Exit(run_daemon(settings, _tell))


def _tell(line: str) -> None:
    typer.echo(line, err=line.startswith("steersman run:"))
    sys.stdout.flush()
