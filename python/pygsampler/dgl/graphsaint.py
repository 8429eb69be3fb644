"""``SAINTSampler`` in the place of DGL's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from dgl.dataloading import graphsaint

from pygsampler._adapters.graphsaint import EdgeDraws, SaintSubgraphs, WalkDraws, by_out_degree
from pygsampler._adapters.sampler_options import Renamed, SamplerOption
from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._sampling import sampler as sampler_base
from pygsampler.dgl.graph import check_graph
from pygsampler.dgl.option_sampler import OptionSampler
from pygsampler.dgl.sampler import Sampler
from pygsampler.dgl.walk_arguments import DGLValueError

__all__ = ["SAINTSampler"]

_MOST = (1 << 31) - 1
# Ours may stand under this name by the time that it is needed.
_OfDGL = graphsaint.SAINTSampler


class SAINTSampler(OptionSampler, Sampler):
    """GraphSAINT as a replacement of ``dgl.dataloading.SAINTSampler``.

    ``sampler.sample(g, indices)`` is a DGLGraph with ``dgl.NID``, ``dgl.EID`` and the graph's
    features: distinct nodes, and all edges among them. The nodes are, by ``mode``,

    - ``'node'``: ``budget`` draws, with replacement, by out-degree, which counts as 1 where
      it is 0;
    - ``'edge'``: the ends of ``budget`` draws, with replacement, of edges, u to v by
      1 / out-degree(u) + 1 / in-degree(v);
    - ``'walk'``: the nodes of walks along edges, ``budget`` is (walks, steps of each), from uniform
      nodes with replacement. A walk that finds no edge stays.

    Parameters
    ----------
    mode : str
        ``'node'``, ``'edge'`` or ``'walk'``.
    budget : int, or a pair of int for ``'walk'``
        See above.
    cache : bool
        Accepted for compatibility. The degrees of each graph are cached in any case.
    prefetch_ndata, prefetch_edata, output_device
        As in DGL.
    seed : int, optional
        64-bit seed of the random numbers, as for ``PGSampler`` of this module. Default: torch's.

    Notes
    -----
    The indices of a loader are no nodes. With ``set_epoch`` they identify the batch: the same
    indices give the same subgraph. The exact norms of edges and of losses are in
    ``pygsampler.samplers.saint_node`` and ``saint_edge``.
    """

    _seeds_matter = False

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
            raise DGLValueError(f"mode: expected 'node', 'edge' or 'walk', got {describe(mode)}")
        self._mode = mode
        boolean(cache, "cache")
        # DGL's class keeps the chances of the graph in ``prob``; ours are kept with the graph.
        self.cache, self.prob = cache, None
        super().__init__(
            {"mode": mode, "budget": budget},
            seed,
            prefetch_node_feats=prefetch_ndata,
            prefetch_edge_feats=prefetch_edata,
            output_device=output_device,
        )

    budget = SamplerOption("The argument; an assignment applies from the next subgraph on.")
    prefetch_ndata = Renamed("prefetch_node_feats")
    prefetch_edata = Renamed("prefetch_edge_feats")

    @property
    def sampler(self) -> Any:
        """The function that draws the nodes of a graph: the mode's method, or an assigned one."""
        return vars(self).get("sampler") or getattr(self, f"{self._mode}_sampler")

    @sampler.setter
    def sampler(self, sampler: Any) -> None:
        self.__dict__["sampler"] = sampler

    def node_sampler(self, g: Any) -> torch.Tensor:
        """The nodes of a batch of ``g`` in mode ``'node'``, ascending."""
        return self._sample_nodes(g)

    def edge_sampler(self, g: Any) -> torch.Tensor:
        """The nodes of a batch of ``g`` in mode ``'edge'``, ascending."""
        return self._sample_nodes(g)

    def walk_sampler(self, g: Any) -> torch.Tensor:
        """The nodes of a batch of ``g`` in mode ``'walk'``, ascending."""
        return self._sample_nodes(g)

    def _sample_nodes(self, g: Any) -> torch.Tensor:
        check_graph(g)
        nodes, _, _ = self.sample_blocks(g, torch.empty(0, dtype=g.idtype, device=g.device))
        distinct: torch.Tensor = torch.unique(nodes)
        return distinct

    def _draws_itself(self) -> bool:
        """True if a subclass, or who assigned ``sampler``, draws the nodes."""
        drawn = getattr(self.sampler, "__func__", None)
        return drawn is not getattr(SAINTSampler, f"{self._mode}_sampler")

    @staticmethod
    def _make_sampler(options: dict[str, Any], seed: int | None) -> sampler_base.Sampler[Any]:
        mode, budget = options["mode"], options["budget"]
        if mode == "walk":
            if not isinstance(budget, Sequence) or len(budget) != 2:
                raise DGLValueError(
                    f"budget: expected a pair (walks, steps), got {describe(budget)}"
                )
            walks, steps = (integer(n, f"budget[{i}]", 1, _MOST) for i, n in enumerate(budget))
            return SaintSubgraphs(WalkDraws(walks, steps), seed, ascending=True)
        budget = integer(budget, "budget", 1, _MOST)
        if mode == "edge":
            return SaintSubgraphs(EdgeDraws(budget), seed, ascending=True)
        return by_out_degree(budget=budget, isolated=True, seed=seed)

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
        if self._draws_itself():
            return _OfDGL.sample(self, g, indices)
        _, _, subgraph = super().sample(g, indices)
        return subgraph

    def __repr__(self) -> str:
        return f"pygsampler.dgl.SAINTSampler({self._mode!r}, {self.budget})"
