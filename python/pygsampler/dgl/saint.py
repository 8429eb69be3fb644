"""``SAINTSampler`` in the place of DGL's."""

from __future__ import annotations

from typing import Any, ClassVar

from pygsampler import sampler as _core
from pygsampler._core.checks import boolean, describe, integer
from pygsampler.dgl.sampler import Sampler
from pygsampler.dgl.walking import WrongValue
from pygsampler.programs import program

__all__ = ["SAINTSampler"]

_MOST = (1 << 31) - 1


class SAINTSampler(Sampler):
    """GraphSAINT's node sampler in the place of ``dgl.dataloading.SAINTSampler``.

    ``sampler.sample(g, indices)`` is a DGLGraph with ``dgl.NID``, ``dgl.EID`` and the graph's
    features: the distinct vertices among ``budget`` draws, with replacement, by out-degree, which
    counts as 1 where it is 0; and all edges among them.

    Parameters
    ----------
    mode : str
        ``'node'``; ``'edge'`` and ``'walk'`` are not offered: NotImplementedError.
    budget : int
        Draws.
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
    ``pygsampler.samplers.saint_node``.
    """

    _of_vertices: ClassVar[bool] = False

    def __init__(
        self,
        mode: str,
        budget: int,
        cache: bool = True,
        prefetch_ndata: Any = None,
        prefetch_edata: Any = None,
        output_device: Any = "cpu",
        *,
        seed: int | None = None,
    ) -> None:
        if mode in ("edge", "walk"):
            raise NotImplementedError(f"mode: expected 'node', got {mode!r}, which is not offered")
        if mode != "node":
            raise WrongValue(f"mode: expected 'node', got {describe(mode)}")
        boolean(cache, "cache")
        super().__init__(
            _made(budget, seed),
            prefetch_node_feats=prefetch_ndata,
            prefetch_edge_feats=prefetch_edata,
            output_device=output_device,
        )
        self._identity.set_seed(seed)
        self._budget, self.cache = budget, cache

    @property
    def budget(self) -> int:
        """Draws of a subgraph; what is assigned counts from the next one on."""
        return self._budget

    @budget.setter
    def budget(self, budget: int) -> None:
        self._sampler = _made(budget, self.seed)
        self._budget = budget

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
        return f"pygsampler.dgl.SAINTSampler('node', {self.budget})"


@program
def _by_out_degree(A: Any, seeds: Any, *, budget: int) -> Any:
    return A.induce(A.count(axis=1).maximum(1).draw(budget, replace=True).unique())


def _made(budget: Any, seed: int | None) -> _core.Sampler[Any]:
    return _by_out_degree(budget=integer(budget, "budget", 1, _MOST), seed=seed)
