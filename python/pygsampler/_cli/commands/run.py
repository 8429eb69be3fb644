"""``python -m pygsampler run``."""

from __future__ import annotations

import os
import sys

import click

# The interpreter is replaced, so that signals, tracebacks and the exit code are the script's.
_START = """
import os, runpy, sys
import pygsampler
pygsampler.install(*filter(None, sys.argv.pop(1).split(",")))
del sys.argv[0]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@click.command(
    short_help="Run a script of PyG or DGL with our classes instead of theirs.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "--framework",
    "frameworks",
    type=click.Choice(["pyg", "dgl"]),
    multiple=True,
    help="Replace the classes of this framework alone; may be given twice.",
)
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(frameworks: tuple[str, ...], script: str, arguments: tuple[str, ...]) -> None:
    """Run SCRIPT with ARGUMENTS after `pygsampler.install()`.

    The script is not changed: its samplers and loaders of PyG and DGL are ours. Exit code and
    output are those of the script.
    """
    sys.stdout.flush()
    python = [sys.executable, "-c", _START, ",".join(frameworks)]
    os.execv(sys.executable, [*python, script, *arguments])
