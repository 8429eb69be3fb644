#!/usr/bin/env python3
"""Write the figures of README.md, of pages of docs/ and of a chart from benchmarks/results.

    python tools/figures.py            # after new results were put there
    python tools/figures.py --check    # 1 where a page shows others than the kept ones

The text between `<!-- figures NAME -->` (a table) or `<!-- figure NAME -->` (inside a sentence) and
`<!-- end -->` is replaced by the result of the function NAME in tools/figure_tables.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from figure_tables import FIGURES, ROOT

PLACE = re.compile(r"(<!-- figures? (\w+) -->\n?).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """The files with figures: README.md, and the pages and drawings of docs/."""
    files = (ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/drawings/*.svg"))
    return sorted(path for path in files if PLACE.search(path.read_text()))


def filled(page: Path) -> str:
    """The page's text with the kept figures."""
    return PLACE.sub(lambda found: found[1] + FIGURES[found[2]]() + found[3], page.read_text())


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = [page for page in pages() if filled(page) != page.read_text()]
    for page in stale:
        if arguments:
            print(f"{page.relative_to(ROOT)}: not the figures of benchmarks/results")
        else:
            page.write_text(filled(page))
    return 1 if arguments and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
