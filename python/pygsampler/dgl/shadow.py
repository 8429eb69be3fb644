"""``ShaDowKHopSampler`` in the place of DGL's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dgl.heterograph import DGLGraph

from pygsampler import samplers
from pygsampler._adapters.sampler_options import SamplerOption
from pygsampler._engine.checks import boolean
from pygsampler._sampling import sampler as sampler_base
from pygsampler.dgl.hetero import fanouts_by_type, is_by_type, sample_hetero, subgraph_of_types
from pygsampler.dgl.option_sampler import OptionSampler
from pygsampler.dgl.options import array_name
from pygsampler.dgl.sampler import Sampler, fanouts_of
from pygsampler.dgl.walk_arguments import is_hetero
from pygsampler.samplers import neighbor

__all__ = ["ShaDowKHopSampler"]


class ShaDowKHopSampler(OptionSampler, Sampler):
    """ShaDow (Zeng et al., 2021) as a replacement of ``dgl.dataloading.ShaDowKHopSampler``.

    A batch is ``(input_nodes, output_nodes, subgraph)``: some hops around the seeds, in each of
    which every node met so far draws neighbors, and all edges of the graph among the nodes met. The
    seeds are the first nodes of the DGLGraph ``subgraph``, which has ``dgl.NID``, ``dgl.EID`` and
    the graph's features.

    Parameters
    ----------
    fanouts : list of int, or of dicts of edge types to int
        Neighbors of each node met so far, innermost hop last; -1 takes all. For a heterograph a
        number is for each edge type; a dict has all edge types.
    replace : bool
        Draw with replacement.
    prob : str, optional
        The name of an array in ``g.edata``: a finite weight >= 0 for each edge, to draw by. Edges
        of weight 0 are never drawn, but they are among the edges of the subgraph. ValueError, at
        the first batch, if the graph has no such array.
    prefetch_node_feats, prefetch_edge_feats, output_device
        As in DGL.
    seed : int, optional
        64-bit seed of the random numbers, as for ``PGSampler`` of this module. Default: torch's.

    Notes
    -----
    ``fanouts``, ``replace`` and ``prob`` may be assigned, and count from the next batch on. A
    repeated seed has a node for each repetition, each with the edges into it. Excluded edges are
    neither drawn nor among the edges of the subgraph.

    For a heterograph ``input_nodes`` and seeds are by node type, with each seed once, and
    ``subgraph`` has all types. Edge types without ``prob`` are drawn from uniformly.
    """

    def __init__(
        self,
        fanouts: Sequence[int],
        replace: bool = False,
        prob: str | None = None,
        prefetch_node_feats: Any = None,
        prefetch_edge_feats: Any = None,
        output_device: Any = None,
        *,
        seed: int | None = None,
    ) -> None:
        options = {"fanouts": fanouts, "replace": replace, "prob": prob}
        super().__init__(
            options,
            seed,
            prefetch_node_feats=prefetch_node_feats,
            prefetch_edge_feats=prefetch_edge_feats,
            output_device=output_device,
        )
        # Stored as passed; other classes of DGL store a list for None.
        self.prefetch_node_feats = prefetch_node_feats
        self.prefetch_edge_feats = prefetch_edge_feats

    def sample_blocks(
        self, g: Any, seed_nodes: Any, exclude_eids: Any = None
    ) -> tuple[Any, Any, Any]:
        """Samples a subgraph, as ``Sampler.sample_blocks`` does, also of a heterograph.

        Parameters
        ----------
        g, seed_nodes, exclude_eids
            The arguments of ``Sampler.sample_blocks``; for a heterograph dicts of node types and of
            edge types to ids.
        """
        if not isinstance(g, DGLGraph) or not (is_hetero(g) or is_by_type(self.fanouts)):
            return super().sample_blocks(g, seed_nodes, exclude_eids)
        by_type = neighbor.PGSampler(
            fanouts_by_type(g, list(self.fanouts) or [0]),
            replace=self.replace,
            prob=self.prob,
            seed=self._identity.seed,
        )
        # A hop of theirs expands all nodes met so far, as ShaDow's.
        nodes, seeds, _ = sample_hetero(by_type, self._identity, g, seed_nodes, exclude_eids)
        made = subgraph_of_types(g, nodes, exclude_eids)
        return nodes, seeds, made if self.output_device is None else made.to(self.output_device)

    fanouts = SamplerOption("The argument, innermost hop last; an assignment applies.")
    replace = SamplerOption("True to draw neighbors with replacement.")
    prob = SamplerOption("The name of the weights in ``g.edata``; None: edges are equal.")

    def __repr__(self) -> str:
        drawn = "" if self.prob is None else f", prob={self.prob!r}"
        return (
            f"pygsampler.dgl.ShaDowKHopSampler({list(self.fanouts)}, replace={self.replace}{drawn})"
        )

    @staticmethod
    def _make_sampler(options: dict[str, Any], seed: int | None) -> sampler_base.Sampler[Any]:
        prob = array_name(options["prob"])
        return samplers.shadow(
            fanouts=fanouts_of(options["fanouts"]),
            replace=boolean(options["replace"], "replace"),
            prob=prob,
            seed=seed,
        )
