"""``python -m pygsampler doctor``."""

from __future__ import annotations

import json

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For programs: one object of JSON.")
def command(as_json: bool) -> None:
    """Look at this installation, sample a small graph with all it has, and say what is wrong.

    The exit status is 0 when all is well, 1 when something that should work does not. To have
    no GPU is well.
    """
    from pygsampler.doctor import examine

    report = examine()
    click.echo(json.dumps(report.json(), indent=2) if as_json else report.text())
    if not report.ok:
        raise SystemExit(1)
