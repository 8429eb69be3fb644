"""``python -m pygsampler doctor``."""

from __future__ import annotations

import click


@click.command(short_help="Check this installation, and say how to mend it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> None:
    """Check this installation: sample a small graph on each device, and name all problems.

    The exit code is 0 when all is well, 1 when something that should work does not. A missing GPU
    is no problem.
    """
    from pygsampler._cli import output
    from pygsampler._cli.doctor import examine

    report = examine()
    if as_json:
        output.write_json(report.json())
    else:
        out = output.console()
        width = max((len(label) for part in report.sections for label, _ in part.lines), default=0)
        for section in report.sections:
            output.title(out, section.heading)
            output.facts(out, section.lines, width=width)
            for note in section.notes:
                out.print(f"  {note}")
        out.print()
        if report.ok:
            out.print("no problem found", style="green")
        for problem in report.problems:
            out.print(f"problem: {problem.what}", style="red")
            out.print(f"    what to do: {problem.remedy}")
    if not report.ok:
        raise SystemExit(1)
