"""``python -m pygsampler calibrate``."""

from __future__ import annotations

import json

import click

from pygsampler._cli import options

_WORK = {
    "map": "an operation on a value",
    "exp": "exp, log or a power of a value",
    "store": "storing a value rather than making it again",
    "column": "adding an edge's weight along its column",
    "row": "adding an edge's weight along its row",
    "draw": "drawing an edge uniformly",
    "race": "a candidate of a draw by weight",
    "write": "writing an edge of a batch",
    "random": "a random number of a node",
    "gather": "reading an edge's element of a vector over all nodes",
    "wide": "adding an edge's weight where all nodes are rows",
    "every": "each node where all are rows",
    "look": "looking at an edge",
    "out": "taking an out-edge",
    "turn": "an edge, to find the out-edges of a graph",
    "in": "looking at an in-edge",
    "bit": "a node's bit where out-edges are taken",
    "more": "a batch that takes out-edges",
}


@click.command(short_help="Measure the costs of programs on this machine, and store them.")
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    metavar="cpu|cuda|cuda:N",
    help="The device to measure.",
)
@options.as_json
def command(device: str, as_json: bool) -> None:
    """Measure the costs of programs on this machine, which takes some seconds.

    The costs are stored in the folder of compiled kernels, where later processes find them. By the
    costs of the CPU compiler passes choose the values to store, by the costs of their device
    batches choose the way to find edges, and explain computes times from them. No batch changes.
    """
    from pygsampler._arrays import devices
    from pygsampler._cli import output
    from pygsampler._engine import library

    index = devices.parse(device)
    if index >= 0:
        devices.require(index)
    found = json.loads(library.call("ProgramCalibrate", index))
    if as_json:
        output.write_json(found)
        return
    out = output.console()
    output.title(out, f"costs of {'one core of the CPU' if index < 0 else devices.name(index)}")
    costs = found["nanoseconds"].items()
    rows = [(_WORK.get(name, name), f"{ns:.4g}") for name, ns in costs]
    output.table(out, ("work", "nanoseconds"), rows, text_columns=1)
    if index < 0:
        out.print(f"a value is stored where it takes more than {found['operations']} operations")
    out.print(f"stored in {found['path']}")
