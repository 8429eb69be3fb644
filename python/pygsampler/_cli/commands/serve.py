"""``python -m pygsampler serve``."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import click

from pygsampler._cli import options

# The variable that has the token when no file is named: all users can see command lines.
TOKEN = "PYGSAMPLER_TOKEN"
# Flight's usual one.
_PORT = 8815

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="Serve samples of a graph over Arrow Flight.")
@click.argument("file", metavar="FILE")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    help="The port to listen on; 0 takes a free one.",
)
@click.option(
    "--token-file",
    type=_FILE,
    metavar="FILE",
    help=f"A file with the token that clients send; by default the value of {TOKEN}.",
)
@click.option(
    "--cert", type=_FILE, metavar="FILE", help="A certificate in PEM, which turns on TLS."
)
@click.option("--key", type=_FILE, metavar="FILE", help="The private key of the certificate.")
@click.option(
    "--max-seeds", type=click.IntRange(1), help="Most seeds of a request.  [default: 65536]"
)
@click.option(
    "--max-edges", type=click.IntRange(1), help="Most edges that a plan can draw.  [default: 2^26]"
)
@click.option(
    "--max-bytes", type=click.IntRange(1), help="Most bytes of a result.  [default: 256 MiB]"
)
@click.option(
    "--max-requests",
    type=click.IntRange(1),
    help="Most requests at once.  [default: two for each core]",
)
@click.option("--programs", is_flag=True, help="Run programs that clients send, too.")
@options.device
@options.as_json
def command(
    file: str,
    host: str,
    port: int,
    token_file: Path | None,
    cert: Path | None,
    key: Path | None,
    programs: bool,
    device: str,
    as_json: bool,
    **limits: int | None,
) -> None:
    """Serve samples of a graph file over Arrow Flight, until Ctrl-C or SIGTERM.

    FILE is an output of convert or Graph.save, or "debian". pygsampler.flight.Client, or any
    client of Flight's, asks for batches of any sampler. Addresses other than loopback ones need a
    token.
    """
    from pygsampler._cli import output
    from pygsampler.flight.server import Server

    given: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    token = os.environ.get(TOKEN) or None
    if token_file is not None:
        token = token_file.read_text().strip()
    graph: Any = options.open_graph(file)
    with (
        graph,
        Server(
            graph.to(device),
            host=host,
            port=port,
            token=token,
            cert=cert,
            key=key,
            programs=programs,
            **given,
        ) as server,
    ):
        if as_json:
            output.write_json({"file": file, "location": server.location, "port": server.port})
        else:
            click.echo(f"serving {file} at {server.location}")
        # Whoever reads this through a pipe waits for it.
        sys.stdout.flush()
        # Signals end it by an exception, and so the server. One that another thread was given, or
        # that came right before the wait, is heard of after it.
        while not threading.Event().wait(1):
            pass
