"""The figures that tools/figures.py writes into pages: a file for each kind."""

from shown import cpu, loading, neighbors, parts, peers, programs, prose, training, turbognn, walks
from shown.record import FIGURES, ROOT

# Each kind puts its own into FIGURES.
__all__ = [
    "FIGURES",
    "ROOT",
    "cpu",
    "loading",
    "neighbors",
    "parts",
    "peers",
    "programs",
    "prose",
    "training",
    "turbognn",
    "walks",
]
