"""All in-neighbours, hop after hop, under the name that DGL has for it."""

from __future__ import annotations

from typing import Any

from pygsampler._engine.checks import integer
from pygsampler.dgl.sampler import PGSampler


class MultiLayerFullNeighborSampler(PGSampler):
    """``PGSampler`` of all in-neighbours, for DGL's class of this name in ``dgl.dataloading``.

    Parameters
    ----------
    num_layers : int
        Hops. Without any a batch has no blocks.
    **options
        Those of ``PGSampler``.
    """

    def __init__(self, num_layers: int, **options: Any) -> None:
        super().__init__([-1] * integer(num_layers, "num_layers", 0), **options)
