"""The graph that all contenders of a comparison read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32] | npt.NDArray[np.int64]


@dataclass(frozen=True)
class CscGraph:
    """A graph in memory: row v of (indptr int64 [V+1], indices [E]) lists v's in-neighbors.

    `features` float32 [V, width] are there where a measure reads them.
    """

    name: str
    indptr: npt.NDArray[np.int64]
    indices: Ids
    features: npt.NDArray[np.float32] | None = None

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        return len(self.indices)

    def copy(self) -> CscGraph:
        """The graph in memory that nothing else shares."""
        features = None if self.features is None else self.features.copy()
        return CscGraph(self.name, self.indptr.copy(), self.indices.copy(), features)
