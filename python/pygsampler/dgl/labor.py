"""``LaborSampler`` in the place of DGL's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pygsampler import sampler as _core
from pygsampler import samplers
from pygsampler._core.checks import boolean
from pygsampler.dgl.options import offered
from pygsampler.dgl.sampler import Sampler, fanouts_of

__all__ = ["LaborSampler"]

# Options of DGL's with the only value that is offered, and what to do else.
_FIXED = {
    "edge_dir": ("in", "dgl.reverse(g) has the out-edges of g as in-edges"),
    "prob": (None, "PGSampler draws by weights"),
    "importance_sampling": (0, "this is LABOR-0"),
    "batch_dependency": (1, "each batch has numbers of its own"),
}


class LaborSampler(Sampler):
    """LABOR-0 (Balin and Catalyurek, 2023) in the place of ``dgl.dataloading.LaborSampler``.

    An edge u to v stays where the uniform number of u, one for all destinations of a hop, is at
    most ``fanout / in-degree of v``: a destination has ``fanout`` edges in the mean, and a batch
    has fewer vertices than ``PGSampler``'s. Blocks have no weights of edges, as DGL's have none.

    Parameters
    ----------
    fanouts : list of int
        Edges of a destination in the mean, outermost hop first; -1 takes all.
    edge_dir : str
        ``'in'``.
    prob : None
        LABOR by weights is not offered: NotImplementedError.
    importance_sampling : int
        0, as LABOR-i is not offered: NotImplementedError.
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
    ``fanouts`` and ``layer_dependency`` may be assigned, and count from the next batch on. Excluded
    edges raise NotImplementedError. ``Sampler(pygsampler.samplers.labor(fanouts=...))`` gives each
    edge one over its chance as ``block.edata["w"]``, by which sums are unbiased.
    """

    def __init__(
        self,
        fanouts: Sequence[int],
        edge_dir: str = "in",
        prob: None = None,
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
        self.edge_dir, self.prob = edge_dir, prob
        self.importance_sampling = importance_sampling
        self.batch_dependency = batch_dependency
        shared = boolean(layer_dependency, "layer_dependency")
        self._fanouts, self._layer_dependency = fanouts, shared
        super().__init__(
            _made(fanouts, shared, seed),
            prefetch_node_feats=prefetch_node_feats,
            prefetch_labels=prefetch_labels,
            prefetch_edge_feats=prefetch_edge_feats,
            output_device=output_device,
        )
        self._identity.set_seed(seed)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED:
            offered(name, value, *_FIXED[name])
        super().__setattr__(name, value)

    @property
    def fanouts(self) -> Any:
        """As given, outermost hop first; what is assigned counts."""
        return self._fanouts

    @fanouts.setter
    def fanouts(self, fanouts: Any) -> None:
        self._sampler = _made(fanouts, self._layer_dependency, self.seed)
        self._fanouts = fanouts

    @property
    def layer_dependency(self) -> bool:
        """Whether the numbers are the same in all hops."""
        return self._layer_dependency

    @layer_dependency.setter
    def layer_dependency(self, layer_dependency: bool) -> None:
        shared = boolean(layer_dependency, "layer_dependency")
        self._sampler = _made(self._fanouts, shared, self.seed)
        self._layer_dependency = shared

    def __repr__(self) -> str:
        return (
            f"pygsampler.dgl.LaborSampler({list(self.fanouts)}, "
            f"layer_dependency={self.layer_dependency})"
        )


def _made(fanouts: Any, shared: bool, seed: int | None) -> _core.Sampler[Any]:
    numbers = fanouts_of(fanouts)
    return samplers.labor(fanouts=numbers, layer_dependency=shared, weights=False, seed=seed)
