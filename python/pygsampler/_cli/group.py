"""The group of commands: which there are, how they end, and what is said when they fail."""

from __future__ import annotations

import difflib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import click

from pygsampler.errors import Error

# Each is a module of this package, whose ``command`` it is.
COMMANDS = (
    "bench",
    "calibrate",
    "convert",
    "doctor",
    "info",
    "partition",
    "quickstart",
    "run",
    "sample",
    "serve",
    "tables",
    "walk",
)

# Exit codes: click has 1 for a failure and 2 for a mistake on the command line; as in a shell,
# 128 and its number is the end by a signal.
FAILURE = 1
INTERRUPTED = 128 + signal.SIGINT

# The packages that a command may lack; their modules have the names that pip knows.
OPTIONAL = ("matplotlib", "numpy", "pyarrow", "pyyaml", "torch")

# The errors that the package documents. Any other error is a bug of ours: its traceback is shown.
_EXPECTED = (
    Error,
    OSError,
    ValueError,
    TypeError,
    IndexError,
    MemoryError,
    OverflowError,
    NotImplementedError,
    ImportError,
)


class CommandError(click.ClickException):
    """A failure that one line explains, without a traceback."""


class Commands(click.Group):
    """A group whose commands are the ``command`` of the modules in ``COMMANDS``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"pygsampler._cli.commands.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = difflib.get_close_matches(args[0].lower(), COMMANDS)
            if not close or "mean" in error.message:
                raise
            meant = " or ".join(map(repr, close))
            raise click.UsageError(f"{error.message} Did you mean {meant}?", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in OPTIONAL:
                raise
            raise CommandError(
                f"{ctx.invoked_subcommand} needs {missing}: pip install {missing}"
            ) from error
        except _EXPECTED as error:
            if ctx.params.get("traceback") or isinstance(error, BrokenPipeError):
                raise
            raise CommandError(_text(error)) from error

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        def run() -> Any:
            return super(Commands, self).main(args, prog_name, complete_var, False, **extra)

        if not standalone_mode:
            return run()
        with _terminated_like_interrupted():
            sys.exit(_status(run))


def _status(run: Callable[[], Any]) -> int:
    """Runs a command and says in one line of stderr what went wrong; its exit code."""
    try:
        code = run()
    except click.Abort:
        click.echo("Aborted!", err=True)
        return INTERRUPTED
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "pygsampler"
        _tell(f"{error.format_message()} ({command} --help says more)")
        return error.exit_code
    except click.ClickException as error:
        _tell(error.format_message())
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has left. The end of the interpreter would flush into it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    return code if isinstance(code, int) else 0


def _tell(text: str) -> None:
    click.echo(f"Error: {' '.join(text.split())}", err=True)


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error) or type(error).__name__


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM ends a command by an exception, so that it takes its temporary files along."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(package_name="pygsampler")
@click.option("--traceback", is_flag=True, help="Show where a failure comes from.")
@click.pass_context
def main(ctx: click.Context, traceback: bool) -> None:
    """Samples mini-batches of large graphs for training graph neural networks.

    Exit codes: 0 all is well, 1 a failure, 2 a mistake on the command line, 130 Ctrl-C.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
