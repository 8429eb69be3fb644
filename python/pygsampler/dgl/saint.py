"""``SAINTSampler`` in the place of DGL's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from pygsampler import sampler as _core
from pygsampler._core.checks import boolean, describe, integer
from pygsampler._loading.saint import Draws, Edges, Walks
from pygsampler.dgl.sampler import Sampler
from pygsampler.dgl.walking import WrongValue
from pygsampler.programs import program
from pygsampler.samplers.subgraphs import induced

__all__ = ["SAINTSampler"]

_MOST = (1 << 31) - 1


class SAINTSampler(Sampler):
    """GraphSAINT in the place of ``dgl.dataloading.SAINTSampler``.

    ``sampler.sample(g, indices)`` is a DGLGraph with ``dgl.NID``, ``dgl.EID`` and the graph's
    features: distinct vertices, and all edges among them. The vertices are, by ``mode``,

    - ``'node'``: ``budget`` draws, with replacement, by out-degree, which counts as 1 where
      it is 0;
    - ``'edge'``: the ends of ``budget`` draws, with replacement, of edges, u to v by
      1 / out-degree(u) + 1 / in-degree(v);
    - ``'walk'``: what walks along edges meet, ``budget`` is (walks, steps of each), from uniform
      vertices with replacement. A walk that finds no edge stays.

    Parameters
    ----------
    mode : str
        ``'node'``, ``'edge'`` or ``'walk'``.
    budget : int, or a pair of int for ``'walk'``
        See above.
    cache : bool
        Accepted for compatibility. The degrees of each graph are kept with it in any case.
    prefetch_ndata, prefetch_edata, output_device
        As in DGL.
    seed : int, optional
        64-bit seed of the random numbers, which are those of ``PGSampler`` of this module in all
        respects. Default: torch's.

    Notes
    -----
    The indices that a loader gives are no vertices. With ``set_epoch`` they say which batch it is:
    the same indices give the same subgraph. The exact norms of edges and of losses are those of
    ``pygsampler.samplers.saint_node`` and ``saint_edge``.
    """

    _of_vertices: ClassVar[bool] = False

    def __init__(
        self,
        mode: str,
        budget: Any,
        cache: bool = True,
        prefetch_ndata: Any = None,
        prefetch_edata: Any = None,
        output_device: Any = "cpu",
        *,
        seed: int | None = None,
    ) -> None:
        if mode not in ("node", "edge", "walk"):
            raise WrongValue(f"mode: expected 'node', 'edge' or 'walk', got {describe(mode)}")
        self._mode = mode
        draws, made = self._of(budget, seed)
        boolean(cache, "cache")
        super().__init__(
            made,
            prefetch_node_feats=prefetch_ndata,
            prefetch_edge_feats=prefetch_edata,
            output_device=output_device,
        )
        self._identity.set_seed(seed)
        self._budget, self._draws, self.cache = budget, draws, cache

    @property
    def budget(self) -> Any:
        """As given; what is assigned counts from the next one on."""
        return self._budget

    @budget.setter
    def budget(self, budget: Any) -> None:
        self._draws, self._sampler = self._of(budget, self.seed)
        self._budget = budget

    def _of(self, budget: Any, seed: int | None) -> tuple[Draws | None, _core.Sampler[Any]]:
        """What draws vertices, where the program does not, and the program."""
        if self._mode == "walk":
            if not isinstance(budget, Sequence) or len(budget) != 2:
                raise WrongValue(f"budget: expected a pair (walks, steps), got {describe(budget)}")
            walks, steps = (integer(n, f"budget[{i}]", 1, _MOST) for i, n in enumerate(budget))
            return Walks(walks, steps), induced(seed=seed)
        budget = integer(budget, "budget", 1, _MOST)
        if self._mode == "edge":
            return Edges(budget), induced(seed=seed)
        return None, _by_out_degree(budget=budget, seed=seed)

    def _given(self, graph: Any, ids: torch.Tensor, epoch: int, batch: int) -> torch.Tensor:
        if self._draws is None:
            return ids[:0]
        distinct: torch.Tensor = torch.unique(self._draws(graph, self.seed, epoch, batch))
        return distinct.to(ids.dtype)

    def sample(self, g: Any, indices: Any) -> Any:
        """A subgraph of ``g``, a homogeneous DGLGraph.

        Parameters
        ----------
        g : dgl.DGLGraph
        indices : int32 or int64, shape [N]
            What numbers the batch, where ``g`` is.

        Returns
        -------
        dgl.DGLGraph
            On ``output_device``.

        Raises
        ------
        TypeError, ValueError
            For indices of a wrong type or shape.
        NotImplementedError
            For a heterograph.
        """
        _, _, subgraph = super().sample(g, indices)
        return subgraph

    def __repr__(self) -> str:
        return f"pygsampler.dgl.SAINTSampler({self._mode!r}, {self.budget})"


@program
def _by_out_degree(A: Any, seeds: Any, *, budget: int) -> Any:
    return A.induce(A.count(axis=1).maximum(1).draw(budget, replace=True).unique())
