"""The command line: ``python -m pygsampler`` or ``pygsampler``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

# Where each command lives. They are imported when they are asked for, since some need torch.
COMMANDS = {
    "doctor": "pygsampler.doctor.command",
    "quickstart": "pygsampler.quickstart.command",
}

# What a command may lack, and the extra that brings it.
EXTRAS = {"matplotlib": "quickstart", "numpy": "quickstart", "torch": "quickstart"}


class Commands(click.Group):
    """A group whose commands are the ``command`` of the modules in ``COMMANDS``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in EXTRAS:
                raise
            raise click.ClickException(
                f"{ctx.invoked_subcommand} needs {missing}: "
                f"pip install 'pygsampler[{EXTRAS[missing]}]'"
            ) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pygsampler")
def main() -> None:
    """Samples mini-batches of large graphs for training graph neural networks."""


if __name__ == "__main__":
    main(prog_name="python -m pygsampler")
