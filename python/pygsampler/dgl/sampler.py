"""``PGSampler``, and any sampler, for DGL: blocks behind ``BlockSampler``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from dgl import NID, DGLGraph
from dgl.dataloading import BlockSampler, neighbor_sampler
from dgl.dataloading.base import set_edge_lazy_features, set_node_lazy_features
from dgl.distributed import DistGraph

from pygsampler._adapters.batch_number import BatchNumber
from pygsampler._adapters.engine_batch import engine_batch, extra_arrays
from pygsampler._adapters.sampler_options import SamplerOption
from pygsampler._batch.subgraph import Subgraph
from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._loader.arguments import check_not_function
from pygsampler._sampling import sampler as sampler_base
from pygsampler._sampling.sampler import check_blocks
from pygsampler.dgl.block import hop_arrays, make_block, make_subgraph
from pygsampler.dgl.graph import (
    check_graph,
    edge_places,
    graph_of,
    graph_with_arrays,
    reverse,
    weighted_graph,
)
from pygsampler.dgl.hetero import (
    batch_to,
    fanouts_by_type,
    is_by_type,
    reverse_types,
    sample_hetero,
)
from pygsampler.dgl.option_sampler import OptionSampler
from pygsampler.dgl.options import EdgeDirection, as_ids, check_direction
from pygsampler.dgl.walk_arguments import is_hetero
from pygsampler.samplers import neighbor

__all__ = ["HeteroOptionSampler", "PGSampler", "Sampler", "fanouts_of", "has_no_hops"]

# Ours may stand under this name by the time that it is needed.
_OfDGL = neighbor_sampler.NeighborSampler


class Sampler(BlockSampler):  # type: ignore[misc]
    """Any ``pygsampler.Sampler`` of blocks or subgraphs, for DGL's ``DataLoader``.

    ``PGSampler`` takes the arguments of DGL's sampler; this class wraps any sampler:

        sampler = pygsampler.dgl.Sampler(pygsampler.PGSampler([10, 10], seed=0))

    Graphs, devices, excluded edges, prefetching and random numbers are as ``PGSampler`` of this
    module says.

    A program that returns a subgraph gives ``(nodes, seeds, subgraph)``, like DGL's
    ``ShaDowKHopSampler``: a DGLGraph whose first nodes are the seeds, a node for each, repeated
    ones too. If the nodes do not depend on the seeds (``samplers.saint_node``), they have the order
    of the program, and are the output nodes as well. If each seed has its own subgraph
    (``samplers.shadow_disjoint``), ``ndata["subgraph_ids"]`` has the position of each node's seed.

    A program over relations takes a heterograph, with seeds as a dict of node types to ids, and
    returns blocks of all of its types, and the values of their edges. It reads arrays of
    ``g.edges[etype].data`` and ``g.nodes[ntype].data`` by their names.

    Vectors and dense rows that a program returns by name are in ``subgraph.ndata`` if they belong
    to its nodes or to all nodes of the graph, and in ``blocks[-1].dstdata`` if they belong to the
    seeds or to all nodes. Other results, and lists, are dropped.

    Parameters
    ----------
    sampler : pygsampler.Sampler
        Its blocks must have destinations first among the sources, as DGL's do. ValueError for a
        sampler of walks or only of vectors.
    prefetch_node_feats, prefetch_labels, prefetch_edge_feats, output_device
        As in DGL.
    edge_values : str, optional
        The name of the sampler's values in ``edata`` of blocks and subgraphs, for graphs that have
        an array of the default name. Default: ``"w"`` for programs, and ``"edge_weights"`` for
        others.
    """

    # False where the seeds of a batch say no more than which batch it is.
    _seeds_matter: ClassVar[bool] = True
    # The name of edge values in blocks; None: the sampler's name.
    _values_as: str | None = None

    def __init__(
        self,
        sampler: sampler_base.Sampler[Any],
        *,
        prefetch_node_feats: Any = None,
        prefetch_labels: Any = None,
        prefetch_edge_feats: Any = None,
        output_device: Any = None,
        edge_values: str | None = None,
    ) -> None:
        super().__init__(
            prefetch_node_feats=prefetch_node_feats,
            prefetch_labels=prefetch_labels,
            prefetch_edge_feats=prefetch_edge_feats,
            output_device=output_device,
        )
        if edge_values is not None:
            if not isinstance(edge_values, str):
                raise TypeError(f"edge_values: expected a name, got {describe(edge_values)}")
            self._values_as = edge_values
        check_not_function(sampler)
        if not isinstance(sampler, sampler_base.Sampler):
            raise TypeError(
                f"sampler: expected a pygsampler.Sampler, got {describe(sampler)}; "
                "pygsampler.dgl.PGSampler takes fanouts"
            )
        check_blocks(sampler)
        self._identity = BatchNumber(sampler.seed)
        self._sampler = sampler

    @property
    def seed(self) -> Any:
        """The 64-bit seed of the random numbers, or the ``seed`` that a subclass has assigned.

        DGL's classes have no ``seed``.
        """
        return vars(self).get("seed", self._identity.seed)

    @seed.setter
    def seed(self, seed: Any) -> None:
        if type(self).__module__.partition(".")[0] == "pygsampler":
            raise AttributeError("seed: expected a call of set_seed, which takes another seed")
        self.__dict__["seed"] = seed

    def set_seed(self, seed: int | None) -> None:
        """Sets the seed, from ``-2**63`` to ``2**64 - 1``, in workers that live on too.

        Without ``set_epoch`` calls count from 0 again, so that a seed which is set twice repeats
        its batches. ``None`` goes back to torch's seed.
        """
        self._identity.set_seed(seed)

    def set_epoch(self, epoch: int | None) -> None:
        """Makes later batches a function of ``epoch``, an integer in ``[0, 2**24)``.

        ``None`` goes back to batches that never repeat.
        """
        self._identity.set_epoch(epoch)

    def sample_blocks(
        self, g: Any, seed_nodes: Any, exclude_eids: Any = None
    ) -> tuple[torch.Tensor, Any, Any]:
        """Samples the blocks of one batch.

        Parameters
        ----------
        g : dgl.DGLGraph
            A homogeneous graph.
        seed_nodes : tensor, list, or dict of one node type to a tensor
            int32 or int64 node ids, on the device of ``g``; or on any GPU for a graph in
            page-locked host memory (``g.pin_memory_()``), which that GPU then samples.
        exclude_eids : tensor, list, or dict of one edge type to a tensor, optional
            Ids of the edges to sample around.

        Returns
        -------
        (input_nodes, output_nodes, blocks)
            ``blocks[0].srcdata[dgl.NID]``, the unchanged ``seed_nodes``, and one DGLBlock for each
            hop, outermost first; on the device of the seeds unless ``output_device`` is another.
            For a subgraph its nodes, the seeds, and one DGLGraph.

        Raises
        ------
        TypeError, ValueError, IndexError
            For seeds or edges of a wrong type, shape or value, and for seeds on a device that
            cannot sample ``g``.
        NotImplementedError
            For a heterograph, which ``PGSampler`` takes.
        CudaError
            When the GPU fails.
        """
        # A subclass that samples itself has none.
        if getattr(self._sampler, "_names_relations", False):
            return self._of_relations(g, seed_nodes, exclude_eids)
        check_graph(g)
        given = _only(seed_nodes, "seed_nodes")
        seeds = as_ids(given, "seed_nodes")
        if not isinstance(given, torch.Tensor):
            seeds = seeds.to(g.device)
        graph = graph_of(g, seeds.device)
        exclude, places = None, None
        if exclude_eids is not None:
            exclude = as_ids(_only(exclude_eids, "exclude_eids"), "exclude_eids").cpu().long()
            # Ids that are no edges, such as -1, exclude nothing, as in DGL.
            exclude = exclude[(exclude >= 0) & (exclude < graph.num_edges)]
        others = None if exclude is None else (b"exclude", exclude)
        epoch, batch = self._identity.number(seeds.cpu(), others)
        # By the seed of that number.
        sampler = self._current()
        drawn_by = sampler.edge_array
        edges, nodes = sampler.array_names
        if drawn_by is not None:
            graph = weighted_graph(g, graph, *drawn_by)
        elif edges or nodes:
            graph = graph_with_arrays(g, graph, edges, nodes, sampler._row_names)
        elif exclude is not None:
            places = edge_places(g, graph)
            if places is not None:
                graph, exclude = places.graph, places.places_of(exclude)
        seeds = seeds if self._seeds_matter else seeds[:0]
        sampled = engine_batch(sampler, graph, seeds, epoch, batch, exclude)
        if isinstance(sampled, Subgraph):
            return self._of_subgraph(g, sampled, seed_nodes)
        hops = hop_arrays(sampled)
        if places is not None:
            hops = [hop._replace(edge_ids=places.edge_ids[hop.edge_ids.long()]) for hop in hops]
        values = self._values_as or sampler.edge_values
        blocks = [make_block(g, hop, values) for hop in hops]
        self._attach_extras(g, blocks[-1], sampled)
        return batch_to((hops[0].src, seed_nodes, blocks), self.output_device)

    def _of_relations(self, g: Any, seed_nodes: Any, exclude_eids: Any) -> tuple[Any, Any, Any]:
        """Samples the blocks of a program over relations of a heterograph."""
        sampler: Any = self._current()
        if sampler._program.result_kind == "subgraph":
            raise NotImplementedError(
                "sampler: expected a program over relations that returns blocks, got one of a "
                "subgraph; batch.to_dgl() of pygsampler.torch.DataLoader makes a block of it"
            )
        about = g, seed_nodes, exclude_eids, self._values_as
        return batch_to(sample_hetero(sampler, self._identity, *about), self.output_device)

    def _attach_extras(self, g: Any, block: Any, sampled: Any) -> None:
        """Puts a program's results for nodes on the destinations of the last block."""
        found = extra_arrays(self._sampler, sampled, block.dstdata[NID])
        rows = dict(found.of_nodes)
        # There may be destinations that are no seeds.
        if len(sampled.output_nodes) == block.num_dst_nodes():
            rows |= found.of_seeds
        for name, values in rows.items():
            _free(g, name, block.dstdata)
            block.dstdata[name] = values

    def _of_subgraph(
        self, g: Any, sampled: Subgraph, seed_nodes: Any
    ) -> tuple[torch.Tensor, Any, Any]:
        rooted = self._sampler.is_rooted
        made = sampled._rooted(rooted)
        values = self._values_as or self._sampler.edge_values
        subgraph, nodes = make_subgraph(g, made, values), made.nodes
        for name, array in extra_arrays(self._sampler, sampled, nodes, made.old).of_nodes.items():
            _free(g, name, subgraph.ndata)
            subgraph.ndata[name] = array
        if sampled.subgraph_ids is not None:
            # The roots were the first nodes, so all have stayed where they were.
            if "subgraph_ids" in subgraph.ndata:
                raise ValueError(
                    "subgraph_ids: expected a graph without ndata['subgraph_ids'], where subgraphs "
                    "have the root of each node"
                )
            subgraph.ndata["subgraph_ids"] = sampled.subgraph_ids
        nodes, _, subgraph = batch_to((nodes, seed_nodes, subgraph), self.output_device)
        return nodes, seed_nodes if rooted else nodes, subgraph

    def assign_lazy_features(self, result: Any) -> Any:
        """Records the features to prefetch in ``result``, a tuple with blocks or a subgraph."""
        nodes, output_nodes, subgraph = result
        if not isinstance(subgraph, DGLGraph):
            # Without fanouts there is no block.
            return super().assign_lazy_features(result) if subgraph else result
        set_node_lazy_features(subgraph, self.prefetch_node_feats)
        set_node_lazy_features(subgraph, self.prefetch_labels)
        set_edge_lazy_features(subgraph, self.prefetch_edge_feats)
        return nodes, output_nodes, subgraph

    def _current(self) -> sampler_base.Sampler[Any]:
        """The sampler, built anew if its seed has changed."""
        if self._sampler.seed != self._identity.seed:
            self._sampler = self._sampler.with_seed(self._identity.seed)
        return self._sampler

    def __repr__(self) -> str:
        return f"pygsampler.dgl.Sampler({self._sampler!r})"


def _free(g: Any, name: str, held: Any) -> None:
    """Raises ValueError if the graph, or ``held`` of a batch, has an array of a needed name."""
    if name in g.ndata:
        raise ValueError(
            f"{name}: expected a graph without ndata[{name!r}], where batches have what the "
            "program returned, got one with it; rename the graph's own"
        )
    if name in held:
        raise ValueError(
            f"{name}: expected another name of what the program returns, got one that batches have "
            "already"
        )


class HeteroOptionSampler(EdgeDirection, OptionSampler, Sampler):
    """A sampler by options that heterographs, and some other graphs, are sampled by types with."""

    # The sampler by types that was used last, and what it was made of.
    _by_types: tuple[Any, Any] | None = None

    def sample_blocks(
        self, g: Any, seed_nodes: Any, exclude_eids: Any = None
    ) -> tuple[Any, Any, Any]:
        """Samples around ``seed_nodes`` of ``g``, without ``exclude_eids``: by types where needed.

        Without fanouts the seeds are input nodes and output nodes, and there are no blocks.
        """
        if has_no_hops(self.fanouts):
            return seed_nodes, seed_nodes, []
        reverses = self._reverses(g)
        of, g = g, reverse(g) if reverses else g
        if not isinstance(g, DGLGraph) or g.is_block or not self._needs_types(g, exclude_eids):
            return super().sample_blocks(g, seed_nodes, exclude_eids)
        self._current()
        fanouts = fanouts_by_type(of, list(self.fanouts))
        if reverses:
            exclude_eids = reverse_types(of, exclude_eids)
            fanouts = [reverse_types(of, hop) for hop in fanouts]
        key = repr((fanouts, self._options)), self._identity.seed
        if self._by_types is None or self._by_types[0] != key:
            self._by_types = key, self._make_hetero_sampler(fanouts, self._identity.seed)
        sampler = self._by_types[1]
        result = sample_hetero(sampler, self._identity, g, seed_nodes, exclude_eids)
        self._keep_weights(g, result[2])
        return batch_to(result, self.output_device)

    def _needs_types(self, g: Any, exclude_eids: Any) -> bool:
        """True if a batch is to be sampled by types."""
        return is_hetero(g) or is_by_type(self.fanouts)

    def _make_hetero_sampler(self, fanouts: list[Any], seed: int) -> Any:
        """Returns what samples by types with these fanouts."""
        raise NotImplementedError

    def _keep_weights(self, g: Any, blocks: Sequence[Any]) -> None:
        """Takes the weights of edge types away that blocks of ``g`` are not to have."""


class PGSampler(HeteroOptionSampler):
    """Neighbor sampling for DGL's ``DataLoader``, by pygsampler's engine.

    It replaces ``dgl.dataloading.NeighborSampler``:

        sampler = pygsampler.dgl.PGSampler([10, 10])
        loader = dgl.dataloading.DataLoader(g, train_ids, sampler, batch_size=1024, shuffle=True)
        for input_nodes, output_nodes, blocks in loader:
            ...

    The blocks are like those of DGL's own sampler: destinations first among the sources,
    ``dgl.NID`` in ``srcdata`` and ``dstdata``, ``dgl.EID`` (the edge's id in ``g``) in ``edata``,
    with the graph's features, all ids in ``g.idtype``. The graph's CSC is used without a copy and
    is read anew when the graph changes.

    The devices of the graph and of the seeds decide who samples, as in DGL. In its loader:

    - Graph and indices on a GPU: that GPU, with blocks there.
    - Graph on the CPU, ``use_uva=True``: the GPU, out of page-locked host memory, with blocks on
      the GPU. This is for graphs that are larger than its memory.
    - Graph on the CPU, ``device="cuda"`` and nothing else: the CPU, in the loader's own prefetch
      thread, which then copies the blocks to the GPU. The sampler does not touch CUDA.
    - Graph on the CPU, with any number of workers: the CPU.

    Parameters
    ----------
    fanouts : list of int, or of dict
        In-neighbors to sample for each node, outermost hop first: ``fanouts[-1]`` is applied to the
        seeds. -1 takes all, also with ``replace=True``; 0 none.
    edge_dir : str
        ``'in'``, or ``'out'``: out-neighbors, whose messages go to the nodes that drew them, in
        blocks like those of ``dgl.reverse(g)``, with the edge ids of ``g``. DGL's own blocks of
        out-neighbors have edges that no layer can use. In a heterograph edges of a type (source,
        relation, destination) become (destination, relation, source) in blocks; fanouts and
        excluded edges use the types of ``g``.
    prob : str, optional
        The name of an array in ``g.edata``, of shape (E,) or (E, 1): bool, integers, float32 or
        float64, a finite weight >= 0 for each edge. A node draws its edges one after another,
        each by its weight among those that are left; with ``replace=True`` among all. An edge of
        weight 0 is never drawn, not by -1 either.
    mask : str, optional
        The name of such an array: edges whose value is 0 are sampled around. At most one of
        ``prob`` and ``mask``.
    replace : bool
        Sample with replacement.
    prefetch_node_feats, prefetch_labels, prefetch_edge_feats
        As in DGL.
    output_device : str, int or torch.device, optional
        The device of the blocks and ``input_nodes``, if not the device that samples.
    fused : bool
        Accepted for compatibility; there is one implementation.
    seed : int, optional
        64-bit seed of the random numbers. Default: torch's, see below.
    edge_weights : str, optional
        ``"ht"``: ``block.edata["edge_weights"]`` has a factor for each edge, float32, shape (E,),
        by which sums over the sampled edges of a node are, in the mean, equal to sums over all its
        edges: see ``pygsampler.PGSampler``. ``g`` may not have an array of that name then.
    mode, mode_options
        The ways of ``pygsampler.PGSampler``, for comparison: ``mode="queue"`` is the task queue of
        the paper, in DGL's loader as in its Figure 7, and ``mode_options={"fetch_size": 5}`` has
        blocks of threads fetch as many tasks at a time as in the paper (PGSampler, section III-C).
        No mode but ``"reservoir"`` changes a batch. ValueError for a heterograph with another mode
        than ``"auto"`` and ``"persistent"``.

    Notes
    -----
    Attributes may be assigned after construction and count from the next batch on, as in DGL;
    unsupported values raise then too. Workers that already run have the values that they started
    with, except for ``set_epoch`` and ``set_seed``.

    Random numbers. The default seed is ``torch.initial_seed()``, read by the constructor, by
    ``set_epoch`` and, without an epoch, for each batch outside worker processes: so
    ``torch.manual_seed`` may also come after the sampler. Call ``sampler.set_epoch(n)`` before each
    epoch to make every batch a pure function of (graph, options, seed, n, the batch's seeds and
    excluded edges): it is then the same for every number of workers, for fork and spawn, and in a
    later run. Without it no batch repeats an earlier one by accident, with equal seeds neither:
    each call of ``sample`` counts up, and in a worker process of torch's DataLoader the worker's
    own seed, which torch draws anew for each epoch, is mixed in; a run is then repeated by
    ``torch.manual_seed`` and the same number of workers. ``set_epoch`` and ``set_seed`` also reach
    persistent workers.

    Duplicate seeds keep their places in ``output_nodes`` and in the last block's destinations,
    so labels taken by ``output_nodes`` fit. Each distinct node is sampled once; the rows of equal
    seeds are equal.

    Excluded edges (``exclude_eids``, as ``as_edge_prediction_sampler`` passes them) are sampled
    around: a node gets ``fanout`` of its other edges if it has as many, while DGL samples first and
    then removes, which leaves fewer. Ids that are no edges, such as -1, exclude nothing, as in DGL.

    On a GPU. The samples are equal to samples of the CPU. A batch is sampled in torch's current
    stream, and its arrays are views of one tensor that torch allocates there; the call returns when
    the batch is complete. The random numbers depend on the seeds, so these are copied to the host,
    and so are the ids of excluded edges. ``block.record_stream``, which DGL offers only for blocks
    with a separate allocation for each array, does not work; ``input_nodes.record_stream`` is
    enough, since the batch is one allocation.

    Weights and masks. ``g.edata`` is looked at for each batch, as in DGL. Tables are computed from
    an array when it is first used, and anew when it is another tensor or was written to: a pass
    over all edges, on all cores, and 16 bytes per edge, with a copy of the edges if some are left
    out. Weights that change with each batch cost that for each batch. Writes that torch does not
    count go unnoticed: through ``tensor.numpy()``, or in its inference mode. Each worker builds the
    tables if the process that starts it has none: with fork, ``sampler.sample(g, ids[:1])`` before
    the loop builds them once for all. An array that ``g`` does not have is a ``ValueError``, where
    DGL samples uniformly.

    Heterographs. A number of ``fanouts`` may be a dict of all edge types to integers; seeds and
    excluded edges are dicts, and a type that has no array of the name ``prob`` or ``mask`` is
    sampled uniformly, and whole. The draws of a type's rows do not depend on other types. For a
    graph on a GPU its CSCs are copied to the host and back, once; the seeds are on the device of
    ``g``, or for a pinned graph on the GPU that samples it.

    In a worker process a batch is sampled by one core.
    """

    _ours: ClassVar[frozenset[str]] = frozenset({"mask", "edge_weights", "mode", "mode_options"})

    def __init__(
        self,
        fanouts: Sequence[int],
        edge_dir: str = "in",
        prob: str | None = None,
        mask: str | None = None,
        replace: bool = False,
        prefetch_node_feats: Any = None,
        prefetch_labels: Any = None,
        prefetch_edge_feats: Any = None,
        output_device: Any = None,
        fused: bool = True,
        *,
        seed: int | None = None,
        edge_weights: str | None = None,
        mode: str = "auto",
        mode_options: Mapping[str, Any] | None = None,
    ) -> None:
        options = {
            "fanouts": fanouts,
            "edge_dir": edge_dir,
            "prob": prob,
            "mask": mask,
            "replace": replace,
            "edge_weights": edge_weights,
            "mode": mode,
            # A copy: what the caller does with it counts for no batch.
            "mode_options": dict(mode_options)
            if isinstance(mode_options, Mapping)
            else mode_options,
        }
        # DGL's own method keeps what it knows of a graph in ``g`` and ``mapping``.
        self.fused, self.g = fused, None
        self.mapping: dict[Any, Any] = {}
        super().__init__(
            options,
            seed,
            prefetch_node_feats=prefetch_node_feats,
            prefetch_labels=prefetch_labels,
            prefetch_edge_feats=prefetch_edge_feats,
            output_device=output_device,
        )

    fanouts = SamplerOption(
        "The argument, outermost hop first; an assignment, also to an element, applies."
    )
    replace = SamplerOption("Whether edges are sampled with replacement.")
    prob = SamplerOption(
        "The name in ``g.edata`` that edges are drawn by, a mask's too, as in DGL; None, which may "
        "be assigned where there is a mask too: all edges are equal.",
        # A subclass that samples by DGL's methods leaves out no more than these do by ``prob``.
        otherwise="mask",
    )
    mask = SamplerOption(
        "The name of the array in ``g.edata`` that says which edges there are, or None."
    )
    edge_weights = SamplerOption('``"ht"``, or None: blocks have no factors.')
    mode = SamplerOption("The way in which batches are sampled.")
    mode_options = SamplerOption("Options that one mode has, or None.")

    def _assign(self, name: str, value: Any) -> None:
        if name != "prob":
            self._take({name: value})
        elif value is None:
            self._take({"prob": None, "mask": None})
        elif value != self.prob:
            self._take({"prob": value})

    def sample_blocks(
        self, g: Any, seed_nodes: Any, exclude_eids: Any = None
    ) -> tuple[Any, Any, Any]:
        """Samples the blocks of one batch, as ``Sampler.sample_blocks`` does, also of heterographs.

        A ``dgl.distributed.DistGraph`` is sampled by DGL's own method, with DGL's random numbers.

        Parameters
        ----------
        g : dgl.DGLGraph
            A graph or a heterograph.
        seed_nodes, exclude_eids
            The arguments of ``Sampler.sample_blocks``; for a heterograph dicts of node types and of
            edge types to ids.

        Returns
        -------
        (input_nodes, output_nodes, blocks)
            For a heterograph input nodes are a dict of all node types; blocks have all types of
            ``g``, empty ones too. Without fanouts the seeds are input nodes and output nodes, and
            there are no blocks.

        Raises
        ------
        NotImplementedError
            For ``edge_weights`` and ``mode`` with a ``DistGraph``.
        """
        if has_no_hops(self.fanouts) or not isinstance(g, DistGraph):
            return super().sample_blocks(g, seed_nodes, exclude_eids)
        # Its edges are in other processes.
        for name, usual in (("edge_weights", None), ("mode", "auto"), ("mode_options", None)):
            if self._options[name] != usual:
                raise NotImplementedError(
                    f"{name}: expected {usual!r} for a DistGraph, which DGL's own method samples, "
                    f"got {self._options[name]!r}"
                )
        batch: tuple[Any, Any, Any] = _OfDGL.sample_blocks(self, g, seed_nodes, exclude_eids)
        return batch

    def _make_hetero_sampler(self, fanouts: list[Any], seed: int) -> neighbor.PGSampler:
        names = ("replace", "prob", "mask", "edge_weights", "mode", "mode_options")
        options = {name: self._options[name] for name in names}
        return neighbor.PGSampler(fanouts, **options, seed=seed)

    @staticmethod
    def _make_sampler(options: dict[str, Any], seed: int | None) -> neighbor.PGSampler:
        check_direction(options["edge_dir"])
        boolean(options["replace"], "replace")
        others = {name: value for name, value in options.items() if name != "edge_dir"}
        return neighbor.PGSampler(**{**others, "fanouts": _plain(options["fanouts"]), "seed": seed})

    def __repr__(self) -> str:
        usual = {"mode": "auto"}
        others = [
            f", {name}={value!r}"
            for name in ("prob", "mask", "edge_weights", "mode", "mode_options")
            if (value := self._options[name]) and value != usual.get(name)
        ]
        return (
            f"pygsampler.dgl.PGSampler({list(self.fanouts)}, replace={self.replace}"
            f"{''.join(others)})"
        )


def _plain(fanouts: Any) -> Any:
    """Returns ``fanouts`` with -1 for each dict, to check the other options without types.

    The values of a dict can be checked only when the types of the graph are known. Without hops it
    is one fanout of 0.
    """
    if has_no_hops(fanouts):
        return [0]
    if not is_by_type(fanouts):
        return fanouts
    return [-1 if isinstance(hop, Mapping) else hop for hop in fanouts]


def has_no_hops(fanouts: Any) -> bool:
    """True if ``fanouts`` is an empty list."""
    return isinstance(fanouts, Sequence) and not isinstance(fanouts, str) and not fanouts


def fanouts_of(fanouts: Any) -> list[int]:
    """The fanouts of a graph of one type, checked as those of ``PGSampler``."""
    return list(neighbor.PGSampler(_plain(fanouts)).fanouts)


def _only(values: Any, where: str) -> Any:
    """The ids of a homogeneous graph, which DGL also writes as a dict with one type."""
    if not isinstance(values, Mapping):
        return values
    if not values:
        return ()
    if len(values) > 1:
        raise NotImplementedError(
            f"{where}: expected one type, got {sorted(map(str, values))}; of heterographs "
            "PGSampler makes blocks, and dgl.to_homogeneous(g) makes a graph of one type"
        )
    return next(iter(values.values()))


class MultiLayerFullNeighborSampler(PGSampler):
    """``PGSampler`` of all in-neighbors, for DGL's class of this name in ``dgl.dataloading``.

    Parameters
    ----------
    num_layers : int
        The number of hops. With 0 a batch has no blocks.
    **options
        Options of ``PGSampler``.
    """

    def __init__(self, num_layers: int, **options: Any) -> None:
        super().__init__([-1] * integer(num_layers, "num_layers", 0), **options)
