"""Prints what the checkers of style find, and keeps their lists of allowed findings.

    python -m tests.style                   # findings that no list allows, entries out of date
    python -m tests.style --all docs pygsampler._graph   # allowed findings too, of these places
    python -m tests.style --write           # remove the entries that are out of date
    python -m tests.style --rewrite         # write all lists anew, after files have moved
    python -m tests.style --add             # allow what is found: after renames alone

The lists only get shorter. `--rewrite` is for a move of files, which changes entries and not their
number, so it refuses to make a list longer. A finding in new code is corrected, never added.
Status 1 if a finding is not allowed or an entry is out of date.
"""

from __future__ import annotations

import argparse
import sys

from tests.style import comments, docstrings, names, prose
from tests.style.findings import (
    ROOT,
    Finding,
    compare,
    list_path,
    read_entries,
    write_entries,
)

CHECKERS = {
    "names": names.find,
    "docstrings": docstrings.find,
    "prose": prose.find,
    "comments": comments.find,
}


def main(arguments: list[str] | None = None) -> int:
    """Runs the command with `arguments`, those of the process if None, and returns its status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.style",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("places", nargs="*", help="print findings with this text alone")
    parser.add_argument("--all", action="store_true", help="print allowed findings too")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--write", action="store_true", help="remove entries out of date")
    action.add_argument("--rewrite", action="store_true", help="write lists anew, none longer")
    action.add_argument("--add", action="store_true", help="write lists anew, after renames")
    options = parser.parse_args(arguments)
    status = 0
    for checker, find in CHECKERS.items():
        findings = list(find(ROOT))
        today = {finding.entry for finding in findings}
        entries = read_entries(checker)
        if options.write:
            write_entries(checker, today & set(entries))
        elif options.rewrite and len(today) > len(entries):
            print(f"{checker}: {len(today)} findings for a list of {len(entries)}", file=sys.stderr)
        elif options.rewrite or options.add:
            write_entries(checker, today)
        entries = read_entries(checker)
        new, unneeded = compare(entries, findings)
        shown = sorted(findings) if options.all else new
        report(shown, options.places)
        for entry in unneeded:
            print(f"{list_path(checker).name}: out of date: {entry}")
        print(f"{checker}: {len(entries)} allowed, {len(new)} new, {len(unneeded)} out of date")
        status |= bool(new or unneeded)
    return status


def report(findings: list[Finding], places: list[str]) -> None:
    """Prints the `findings` whose place or entry has one of `places`, or all."""
    for finding in findings:
        if not places or any(each in finding.entry or each in finding.place for each in places):
            print(f"{finding.place}: {finding.entry}")


if __name__ == "__main__":
    sys.exit(main())
