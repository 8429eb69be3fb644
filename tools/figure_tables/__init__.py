"""The figures that tools/figures.py writes into pages: a file for each kind."""

from figure_tables import (
    cpu,
    loading,
    locality,
    neighbors,
    overview,
    partitioned,
    pgsampler,
    programs,
    prose,
    shared,
    training,
    turbognn,
    walks,
)
from figure_tables.record import FIGURES, ROOT

# Each kind puts its own into FIGURES.
__all__ = [
    "FIGURES",
    "ROOT",
    "cpu",
    "loading",
    "locality",
    "neighbors",
    "overview",
    "partitioned",
    "pgsampler",
    "programs",
    "prose",
    "shared",
    "training",
    "turbognn",
    "walks",
]
