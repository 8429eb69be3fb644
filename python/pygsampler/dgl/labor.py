"""``LaborSampler`` in the place of DGL's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from dgl.heterograph import DGLGraph

from pygsampler import sampler as _core
from pygsampler import samplers
from pygsampler._core.checks import boolean, describe, integer
from pygsampler.dgl.hetero import is_by_type
from pygsampler.dgl.hetero_labor import sample_labor
from pygsampler.dgl.optioned import Option, Optioned
from pygsampler.dgl.options import array_name, offered
from pygsampler.dgl.sampler import fanouts_of
from pygsampler.dgl.walking import is_typed

__all__ = ["LaborSampler"]

# Options of DGL's with the only value that is offered, and what to do else.
_FIXED = {
    "edge_dir": ("in", "dgl.reverse(g) has the out-edges of g as in-edges"),
    "batch_dependency": (
        1,
        "pygsampler.torch.DataLoader with samplers.labor has it",
    ),
}
# Each round of LABOR-i goes through a hop's edges a few times, and is written out in the program.
_MOST_ROUNDS = 16


class LaborSampler(Optioned):
    """LABOR (Balin and Catalyurek, 2023) in the place of ``dgl.dataloading.LaborSampler``.

    An edge u to v stays where the uniform number of u, one for all destinations of a hop, is at
    most its chance: a destination has ``fanout`` edges in the mean, and a batch has fewer vertices
    than ``PGSampler``'s. ``pygsampler.samplers.labor`` says what the chances are.

    Blocks have ``edata["edge_weights"]``, as DGL's, where ``prob`` or ``importance_sampling`` is
    given: weight / chance, scaled so that those of a destination sum to the number of its edges,
    for models that take the mean of weighted messages.

    Parameters
    ----------
    fanouts : list of int, or of dicts of edge types to int
        Edges of a destination in the mean, outermost hop first; -1 takes all. A dict has all edge
        types of a heterograph.
    edge_dir : str
        ``'in'``.
    prob : str, optional
        The name of an array in ``g.edata``: a finite weight >= 0 for each edge. Edges of weight 0
        are never drawn. ValueError, at the first batch, where the graph has none of that name.
    importance_sampling : int
        i of LABOR-i, at most 16: rounds in which chances are made that have fewer vertices. DGL's
        negative numbers, rounds until nothing changes, are not offered: NotImplementedError.
    layer_dependency : bool
        The numbers are the same in all hops of a batch.
    batch_dependency : int
        1: DGL's loaders do not say which batches follow each other. NotImplementedError else;
        ``pygsampler.samplers.labor`` has it, in ``pygsampler.torch.DataLoader``.
    prefetch_node_feats, prefetch_labels, prefetch_edge_feats, output_device
        As in DGL.
    seed : int, optional
        64-bit seed of the random numbers, which are those of ``PGSampler`` of this module in all
        respects. Default: torch's.

    Notes
    -----
    ``fanouts``, ``prob``, ``importance_sampling`` and ``layer_dependency`` may be assigned, and
    count from the next batch on. Excluded edges raise NotImplementedError.

    Of a heterograph, on the CPU, each edge type is sampled by itself, by one number for a node
    in a hop, as DGL does: the nodes that one edge type keeps are likely those that others keep.
    Seeds are a dict of node types to ids that are all different, and edge types without ``prob``
    are sampled uniformly. Blocks have all types, and ``edge_weights`` of the edge types that have
    weights.

    ``Sampler(pygsampler.samplers.labor(fanouts=...))`` gives each edge one over its chance as
    ``block.edata["w"]``, by which sums are unbiased.
    """

    _values_as: ClassVar[str | None] = "edge_weights"

    def __init__(
        self,
        fanouts: Sequence[int],
        edge_dir: str = "in",
        prob: str | None = None,
        importance_sampling: int = 0,
        layer_dependency: bool = False,
        batch_dependency: int = 1,
        prefetch_node_feats: Any = None,
        prefetch_labels: Any = None,
        prefetch_edge_feats: Any = None,
        output_device: Any = None,
        *,
        seed: int | None = None,
    ) -> None:
        self.edge_dir, self.batch_dependency = edge_dir, batch_dependency
        # Of heterographs: the options and the seed, and the samplers of one hop by them.
        self._by_hop: tuple[Any, dict[tuple[int, bool], _core.Sampler[Any]]] = (None, {})
        options = {
            "fanouts": fanouts,
            "prob": prob,
            "importance_sampling": importance_sampling,
            "layer_dependency": layer_dependency,
        }
        super().__init__(
            options,
            seed,
            prefetch_node_feats=prefetch_node_feats,
            prefetch_labels=prefetch_labels,
            prefetch_edge_feats=prefetch_edge_feats,
            output_device=output_device,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED:
            offered(name, value, *_FIXED[name])
        super().__setattr__(name, value)

    def sample_blocks(
        self, g: Any, seed_nodes: Any, exclude_eids: Any = None
    ) -> tuple[Any, Any, Any]:
        """As ``Sampler.sample_blocks``; of a heterograph by types, as ``PGSampler`` has it."""
        typed = isinstance(g, DGLGraph) and not g.is_block and is_typed(g)
        if not typed and not is_by_type(self.fanouts):
            return super().sample_blocks(g, seed_nodes, exclude_eids)
        if exclude_eids is not None:
            raise NotImplementedError(
                f"exclude_eids: expected None for LaborSampler, got {describe(exclude_eids)}"
            )
        # Made once: a program takes longer to write than a batch of it.
        about = repr(self._options), self.seed
        if self._by_hop[0] != about:
            self._by_hop = about, {}
        options, by_hop = self._options, self._by_hop[1]

        def made(fanout: int, weighted: bool) -> _core.Sampler[Any]:
            key = fanout, weighted
            if key not in by_hop:
                of = {**options, "fanouts": [fanout], "prob": self.prob if weighted else None}
                by_hop[key] = self._made(of, self.seed)
            return by_hop[key]

        nodes, seeds, blocks = sample_labor(
            made, self.fanouts, self.prob, self.layer_dependency, self._identity, g, seed_nodes
        )
        if self.output_device is not None and torch.device(self.output_device).type != "cpu":
            blocks = [block.to(self.output_device) for block in blocks]
            nodes = (
                {kind: ids.to(self.output_device) for kind, ids in nodes.items()}
                if isinstance(nodes, dict)
                else nodes.to(self.output_device)
            )
        return nodes, seeds, blocks

    fanouts = Option("As given, outermost hop first; what is assigned counts.")
    prob = Option("The name of the weights in ``g.edata``; None: edges are equal.")
    importance_sampling = Option("i of LABOR-i.")
    layer_dependency = Option("Whether the numbers are the same in all hops.")

    def __repr__(self) -> str:
        plain = {"prob": None, "importance_sampling": 0}
        named = [f"{k}={v!r}, " for k, v in self._options.items() if k in plain and v != plain[k]]
        return (
            f"pygsampler.dgl.LaborSampler({list(self.fanouts)}, {''.join(named)}"
            f"layer_dependency={self.layer_dependency})"
        )

    @staticmethod
    def _made(options: dict[str, Any], seed: int | None) -> _core.Sampler[Any]:
        prob, rounds = array_name(options["prob"]), options["importance_sampling"]
        if isinstance(rounds, int) and not isinstance(rounds, bool) and rounds < 0:
            raise NotImplementedError(
                f"importance_sampling: expected an integer >= 0, got {rounds}, which is not "
                "offered; a few rounds come close"
            )
        rounds = integer(rounds, "importance_sampling", 0, _MOST_ROUNDS)
        weighted = prob is not None or rounds > 0
        return samplers.labor(
            fanouts=fanouts_of(options["fanouts"]),
            importance=rounds,
            layer_dependency=boolean(options["layer_dependency"], "layer_dependency"),
            weights=weighted,
            normalize="mean" if weighted else None,
            weight=prob,
            seed=seed,
        )
