"""``python -m pygsampler calibrate``."""

from __future__ import annotations

import json

import click

from pygsampler.cli import options


@click.command(short_help="Measure what programs' work takes on this machine, and keep it.")
@options.as_json
def command(as_json: bool) -> None:
    """Measure what the work of programs takes on the CPU of this machine, in about a second.

    The costs are kept in the folder of what was compiled, where later processes find them: passes
    choose by them which values are stored, and explain tells times by them. No batch changes.
    """
    from pygsampler._core import library
    from pygsampler.cli import output

    found = json.loads(library.call("ProgramCalibrate"))
    if as_json:
        output.write_json(found)
        return
    out = output.console()
    output.title(out, "nanoseconds of one core")
    output.facts(out, [(name, f"{ns:.2f}") for name, ns in found["nanoseconds"].items()])
    out.print(f"a value is stored where it takes more than {found['operations']} operations")
    out.print(f"kept in {found['path']}")
