"""``python -m pygsampler calibrate``."""

from __future__ import annotations

import json

import click

from pygsampler.cli import options


@click.command(short_help="Measure what programs' work takes on this machine, and keep it.")
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    metavar="cpu|cuda|cuda:N",
    help="What to measure.",
)
@options.as_json
def command(device: str, as_json: bool) -> None:
    """Measure what the work of programs takes on this machine, in some seconds.

    The costs are kept in the folder of what was compiled, where later processes find them: passes
    choose by those of the CPU which values are stored, batches by those of their device how edges
    are found, and explain tells times by them. No batch changes.
    """
    from pygsampler._arrays import devices
    from pygsampler._core import library
    from pygsampler.cli import output

    index = devices.parse(device)
    if index < 0:
        found = json.loads(library.call("ProgramCalibrate"))
    else:
        devices.require(index)
        found = json.loads(library.call("ProgramCalibrateDevice", index))
    if as_json:
        output.write_json(found)
        return
    out = output.console()
    output.title(out, f"nanoseconds of {'one core' if index < 0 else devices.name(index)}")
    output.facts(out, [(name, f"{ns:.4g}") for name, ns in found["nanoseconds"].items()])
    if index < 0:
        out.print(f"a value is stored where it takes more than {found['operations']} operations")
    out.print(f"kept in {found['path']}")
