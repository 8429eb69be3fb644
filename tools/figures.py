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

_RESEARCH = (
    *("gnnsampler", "gsampler", "nextdoor", "nextdoor-figures", "pgsampler", "turbognn"),
    "turbognn-figures",
)
PAGES = tuple(
    ROOT / page
    for page in (
        "README.md",
        "docs/index.md",
        *(
            f"docs/guide/{name}.md"
            for name in (
                *("heterogeneous", "features", "cuda-graphs", "prefetching", "partitioned"),
                *("shared-graphs", "multi-gpu", "tables", "walks"),
            )
        ),
        "docs/algorithms/samplers.md",
        *(
            f"docs/performance/{name}.md"
            for name in ("adapters", "index", "cpu", "gpu", "programs")
        ),
        *(f"docs/research/{name}.md" for name in _RESEARCH),
        "docs/drawings/speed.svg",
    )
)
PLACE = re.compile(r"(<!-- figures? (\w+) -->\n?).*?(<!-- end -->)", re.DOTALL)


def filled(page: Path) -> str:
    """The page's text with the kept figures."""
    return PLACE.sub(lambda found: found[1] + FIGURES[found[2]]() + found[3], page.read_text())


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = [page for page in PAGES if filled(page) != page.read_text()]
    for page in stale:
        if arguments:
            print(f"{page.relative_to(ROOT)}: not the figures of benchmarks/results")
        else:
            page.write_text(filled(page))
    return 1 if arguments and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
