"""Prints the findings of the checkers of style: ``python -m tests.style [PLACE ...]``.

With places, such as ``docs`` or ``pygsampler._graph``, it prints only findings there. Status 1 if
there is a finding.
"""

from __future__ import annotations

import sys

from tests.style import comments, docstrings, names, openings, prose
from tests.style.findings import ROOT

CHECKERS = {
    "names": names.find,
    "docstrings": docstrings.find,
    "prose": prose.find,
    "comments": comments.find,
    "openings": openings.find,
}


def main(places: list[str]) -> int:
    """Prints the findings of all checkers, and returns the status of the command."""
    status = 0
    for checker, find in CHECKERS.items():
        found = [
            each
            for each in sorted(find(ROOT))
            if not places or any(text in each.entry or text in each.place for text in places)
        ]
        for each in found:
            print(f"{each.place}: {each.entry}")
        print(f"{checker}: {len(found)} findings")
        status |= bool(found)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
