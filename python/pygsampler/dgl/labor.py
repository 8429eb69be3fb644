"""``LaborSampler`` in the place of DGL's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from dgl.dataloading import labor_sampler

from pygsampler._adapters.sampler_options import SamplerOption
from pygsampler._engine.checks import boolean, integer
from pygsampler._sampling import sampler as sampler_base
from pygsampler.dgl.dependent_batch_number import DependentBatchNumber
from pygsampler.dgl.options import array_name, check_direction
from pygsampler.dgl.sampler import HeteroOptionSampler, fanouts_of
from pygsampler.samplers import labor, layer_wise

__all__ = ["LaborSampler"]

# Each round of LABOR-i goes through a hop's edges a few times, and is written out in the program.
_MOST_ROUNDS = 16
# Ours may stand under this name by the time that it is needed.
_OfDGL = labor_sampler.LaborSampler


class LaborSampler(HeteroOptionSampler):
    """LABOR (Balin and Catalyurek, 2023) as a replacement of ``dgl.dataloading.LaborSampler``.

    An edge u to v stays where the uniform number of u, one for all destinations of a hop, is at
    most its chance: a destination has ``fanout`` edges in the mean, and a batch has fewer nodes
    than ``PGSampler``'s. ``pygsampler.LaborSampler`` has the formulas of the chances.

    With ``prob`` or ``importance_sampling`` blocks have ``edata["edge_weights"]``, like DGL's:
    weight / chance, scaled so that the values of a destination sum to the number of its edges, for
    models that take the mean of weighted messages.

    Parameters
    ----------
    fanouts : list of int, or of dicts of edge types to int
        Edges of a destination in the mean, outermost hop first; -1 takes all. A dict has all edge
        types of a heterograph.
    edge_dir : str
        ``'in'``, or ``'out'`` as for ``PGSampler``: out-neighbors.
    prob : str, optional
        The name of an array in ``g.edata``: a finite weight >= 0 for each edge. Edges of weight 0
        are never drawn. ValueError, at the first batch, if the graph has no such array.
    importance_sampling : int
        i of LABOR-i, at most 16: rounds in which chances are computed that need fewer nodes. -1,
        and any negative number: rounds until the expected number of nodes hardly falls.
    layer_dependency : bool
        The numbers are the same in all hops of a batch.
    batch_dependency : int
        Numbers change gradually from a batch of this sampler to the next, in a worker process from
        that worker's, so that nodes of one batch are met again in the next, and over so many
        batches to independent numbers: by DGL's rule (``pygsampler.LaborSampler``). 0 or less: the
        same in all batches, until ``set_seed`` or ``set_epoch``. Other than 1 a batch follows from
        the batches before it, too.
    prefetch_node_feats, prefetch_labels, prefetch_edge_feats, output_device
        As in DGL.
    seed : int, optional
        64-bit seed of the random numbers, as for ``PGSampler`` of this module. Default: torch's.

    Notes
    -----
    ``fanouts``, ``prob``, ``importance_sampling`` and ``layer_dependency`` may be assigned, and
    count from the next batch on. Excluded edges are left out before chances are computed: a
    destination has ``fanout`` of its other edges in the mean, where DGL samples first.

    In a heterograph each edge type is sampled separately, by one number for each node in a hop:
    nodes that one edge type samples are likely sampled by others (``pygsampler.LaborSampler``).
    Edge types without ``prob`` are sampled uniformly. Blocks have all types, and ``edge_weights``
    of the edge types that have weights. Excluded edges are a dict.

    The device of the seeds samples, from a ``g`` there or in page-locked memory.

    ``Sampler(pygsampler.LaborSampler(fanouts, edge_weights="ht"))`` gives each edge one over its
    chance as ``block.edata["edge_weights"]``, by which sums are unbiased.
    """

    _values_as: str | None = "edge_weights"
    _ours: ClassVar[frozenset[str]] = frozenset({"batch_dependency"})

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
        options = {
            "fanouts": fanouts,
            "edge_dir": edge_dir,
            "prob": prob,
            "importance_sampling": importance_sampling,
            "layer_dependency": layer_dependency,
            "batch_dependency": batch_dependency,
        }
        super().__init__(
            options,
            seed,
            prefetch_node_feats=prefetch_node_feats,
            prefetch_labels=prefetch_labels,
            prefetch_edge_feats=prefetch_edge_feats,
            output_device=output_device,
        )
        self._consecutive.period = batch_dependency

    def _new_batch_number(self, seed: int | None) -> DependentBatchNumber:
        self._consecutive = DependentBatchNumber(seed)
        return self._consecutive

    def __getattr__(self, name: str) -> Any:
        """Returns DGL's attributes of random numbers, for a subclass that samples by them."""
        own = vars(self)
        if name not in ("cnt", "random_seed", "rng") or "_options" not in own or "cnt" in own:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        period = self._options["batch_dependency"]
        self.cnt = torch.tensor([-1, period])
        self.random_seed = torch.zeros(2 if period > 1 else 1, dtype=torch.int64)
        _OfDGL.set_seed(self, None if period > 0 else self._identity.seed)
        return own[name]

    def set_seed(self, random_seed: int | None = None) -> None:
        """Sets the seed to ``random_seed``, an argument with DGL's name; ``None`` is torch's seed.

        In DGL the seed is for the next batch alone: here it stays. Numbers also follow from the
        seeds of a batch, so two samplers with one seed have the same draws for the same seeds.
        """
        super().set_seed(random_seed)
        if "cnt" in vars(self):
            _OfDGL.set_seed(self, random_seed)

    def _assign(self, name: str, value: Any) -> None:
        super()._assign(name, value)
        if name == "batch_dependency":
            self._consecutive.period = value

    def _needs_types(self, g: Any, exclude_eids: Any) -> bool:
        """True if a batch is to be sampled by types, as graphs without types may be too."""
        return (
            super()._needs_types(g, exclude_eids)
            or exclude_eids is not None
            or self.importance_sampling < 0
        )

    def _make_hetero_sampler(self, fanouts: list[Any], seed: int) -> labor.LaborSampler:
        weighted = self.prob is not None or self.importance_sampling != 0
        return labor.LaborSampler(
            fanouts,
            importance=max(self.importance_sampling, -1),
            layer_dependency=self.layer_dependency,
            batch_dependency=max(self.batch_dependency, 1),
            prob=self.prob,
            edge_weights="mean" if weighted else None,
            seed=seed,
        )

    def _keep_weights(self, g: Any, blocks: Sequence[Any]) -> None:
        """Takes the weights of edge types away that are all one, as DGL's have none."""
        if self.prob is None or self.importance_sampling:
            return
        for block in blocks:
            for kind in g.canonical_etypes:
                if self.prob not in g.edges[kind].data:
                    block.edges[kind].data.pop("edge_weights", None)

    fanouts = SamplerOption("The argument, outermost hop first; an assignment applies.")
    prob = SamplerOption("The name of the weights in ``g.edata``; None: edges are equal.")
    importance_sampling = SamplerOption("i of LABOR-i.")
    layer_dependency = SamplerOption("Whether the numbers are the same in all hops.")
    batch_dependency = SamplerOption("In how many batches numbers change to others.")

    def __repr__(self) -> str:
        plain = {"prob": None, "importance_sampling": 0}
        named = [f"{k}={v!r}, " for k, v in self._options.items() if k in plain and v != plain[k]]
        return (
            f"pygsampler.dgl.LaborSampler({list(self.fanouts)}, {''.join(named)}"
            f"layer_dependency={self.layer_dependency})"
        )

    @staticmethod
    def _make_sampler(options: dict[str, Any], seed: int | None) -> sampler_base.Sampler[Any]:
        check_direction(options["edge_dir"])
        prob, rounds = array_name(options["prob"]), options["importance_sampling"]
        # Batches of negative ones are sampled by types; what else there is is checked here.
        rounds = max(integer(rounds, "importance_sampling", -(2**31), _MOST_ROUNDS), 0)
        weighted = prob is not None or rounds > 0
        period = integer(options["batch_dependency"], "batch_dependency", -(2**31), 2**31 - 1)
        return layer_wise.labor(
            fanouts=fanouts_of(options["fanouts"]),
            importance=rounds,
            layer_dependency=boolean(options["layer_dependency"], "layer_dependency"),
            batch_dependency=max(period, 1),
            weights=weighted,
            normalize="mean" if weighted else None,
            weight=prob,
            seed=seed,
        )
