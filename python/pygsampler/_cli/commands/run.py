"""``python -m pygsampler run``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

# The frameworks that `pygsampler.install` knows, and the package of each.
PACKAGES = {"pyg": "torch_geometric", "dgl": "dgl"}
# Its `sitecustomize` installs our classes, in the processes that the program starts as well.
_STARTUP = str(Path(__file__).resolve().parents[1] / "startup")


@click.command(
    short_help="Run a script of PyG or DGL with our classes instead of theirs.",
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--framework",
    "frameworks",
    type=click.Choice(list(PACKAGES)),
    multiple=True,
    help="Replace the classes of this framework only; may be repeated.",
)
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is a module, as after `python -m`.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    frameworks: tuple[str, ...], is_module: bool, script: str, arguments: tuple[str, ...]
) -> None:
    """Run SCRIPT with ARGUMENTS, and with `pygsampler.install()` once it imports PyG or DGL.

    The script is not changed: it and the processes that it starts get our samplers and loaders
    under the names of PyG and DGL. Output, tracebacks and exit code come from the script.
    """
    if not is_module and not os.path.exists(script):
        raise click.BadParameter(f"expected a file, found none at {script!r}", param_hint="SCRIPT")
    if sys.flags.ignore_environment or sys.flags.no_site:
        raise click.UsageError(
            "run: expected a Python that reads PYTHONPATH, got one with -E, -I or -S; leave it out"
        )
    packages = [f"{PACKAGES[key]}={key}" for key in frameworks or PACKAGES]
    paths = [_STARTUP, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "PYGSAMPLER_RUN": ",".join(packages),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    # The interpreter's own options, such as -W and -X, as multiprocessing hands them to a child.
    options = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    program = ["-m", script] if is_module else [script]
    sys.stdout.flush()
    # The process is replaced: signals, tracebacks and the exit code are the script's.
    os.execve(sys.executable, [sys.executable, *options, *program, *arguments], environment)
