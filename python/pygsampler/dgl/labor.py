"""``LaborSampler`` in the place of DGL's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pygsampler import sampler as _core
from pygsampler import samplers
from pygsampler._core.checks import boolean, integer
from pygsampler.dgl.optioned import Option, Optioned
from pygsampler.dgl.options import array_name, offered
from pygsampler.dgl.sampler import fanouts_of

__all__ = ["LaborSampler"]

# Options of DGL's with the only value that is offered, and what to do else.
_FIXED = {
    "edge_dir": ("in", "dgl.reverse(g) has the out-edges of g as in-edges"),
    "batch_dependency": (1, "each batch has numbers of its own"),
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
    fanouts : list of int
        Edges of a destination in the mean, outermost hop first; -1 takes all.
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
        1, as numbers that batches share are not offered: NotImplementedError.
    prefetch_node_feats, prefetch_labels, prefetch_edge_feats, output_device
        As in DGL.
    seed : int, optional
        64-bit seed of the random numbers, which are those of ``PGSampler`` of this module in all
        respects. Default: torch's.

    Notes
    -----
    ``fanouts``, ``prob``, ``importance_sampling`` and ``layer_dependency`` may be assigned, and
    count from the next batch on. Excluded edges raise NotImplementedError.
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
