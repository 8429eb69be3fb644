"""``HeteroLaborSampler``: LABOR on graphs with types behind PyG's ``BaseSampler``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch_geometric.data import HeteroData
from torch_geometric.sampler import NumNeighbors
from torch_geometric.sampler.base import SubgraphType

from pygsampler.pyg.hetero_sampler import HeteroSampler
from pygsampler.samplers import labor

if TYPE_CHECKING:
    from pygsampler._graph.hetero_graph import EdgeType

__all__ = ["HeteroLaborSampler"]


class HeteroLaborSampler(HeteroSampler):
    """LABOR on a ``HeteroData`` for PyG's loaders: fewer nodes at the same variance.

        sampler = pygsampler.pyg.HeteroLaborSampler(data, [10, 5], importance=1)
        loader = NeighborLoader(data, [10, 5], "paper", neighbor_sampler=sampler, batch_size=1024)

    ``NodeLoader``, ``LinkLoader``, ``NeighborLoader`` and ``LinkNeighborLoader`` take one, PyG's
    and this module's; of the latter batches have ``edge_weights`` of each edge type, beside
    ``e_id``. Batches are as those of ``HeteroSampler``.

    Parameters
    ----------
    data : HeteroData, or (FeatureStore, GraphStore)
        As for ``HeteroSampler``.
    num_neighbors : list of int, dict of edge types to lists of int, or NumNeighbors
        The edges of a node in the mean, by each edge type, the seeds' number first; -1 takes all.
    importance, exact, layer_dependency
        As ``pygsampler.LaborSampler`` has them.
    weight_attr : str, optional
        As for ``HeteroSampler``.
    edge_weights : str, optional
        ``"ht"``: one over the chance of each edge, ``"mean"``: DGL's, or None. For directional
        subgraphs.
    subgraph_type, sample_direction, seed, device
        As for ``HeteroSampler``.

    Raises
    ------
    TypeError, ValueError, IndexError, NotImplementedError
        As ``HeteroSampler``.

    Notes
    -----
    ``set_seed``, ``set_epoch`` and random numbers are as ``PGSampler`` has them. A GPU samples
    where the data, or ``device``, is one.
    """

    def __init__(
        self,
        data: HeteroData,
        num_neighbors: Sequence[int] | Mapping[EdgeType, Sequence[int]] | NumNeighbors,
        *,
        importance: int = 0,
        exact: bool = False,
        layer_dependency: bool = False,
        weight_attr: str | None = None,
        edge_weights: str | None = "ht",
        subgraph_type: str | SubgraphType = "directional",
        sample_direction: str = "forward",
        seed: int | None = None,
        device: Any = None,
    ) -> None:
        super().__init__(
            data,
            num_neighbors,
            weight_attr=weight_attr,
            sample_direction=sample_direction,
            seed=seed,
            device=device,
        )
        self._sampler: Any = labor.LaborSampler(
            self._fanouts(num_neighbors)[1] or [0],
            importance=importance,
            exact=exact,
            layer_dependency=layer_dependency,
            frontier="new",
            prob=weight_attr,
            edge_weights=edge_weights,
            seed=self.seed,
        )
        self.subgraph_type = subgraph_type
        self._check_factors()

    @property  # type: ignore[misc]
    def replace(self) -> bool:
        """False."""
        return False

    @property  # type: ignore[misc]
    def disjoint(self) -> bool:
        """False: seeds share nodes."""
        return False

    @property  # type: ignore[misc]
    def time_attr(self) -> None:
        """None: edges have no times."""
        return None

    def _engine_sampler(self) -> Any:
        return self._sampler

    def __repr__(self) -> str:
        return f"pygsampler.pyg.HeteroLaborSampler({self._sampler!r}, {self.subgraph_type.value!r})"
