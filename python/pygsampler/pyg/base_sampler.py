"""``Sampler``: any of pygsampler's samplers behind PyG's ``BaseSampler``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch_geometric.sampler import BaseSampler, EdgeSamplerInput, NodeSamplerInput, SamplerOutput
from torch_geometric.sampler.base import SubgraphType
from torch_geometric.sampler.neighbor_sampler import edge_sample

from pygsampler._adapters.batch_number import BatchNumber
from pygsampler._adapters.engine_batch import extra_arrays, worker_threads
from pygsampler._batch.induced_edges import induced_edges
from pygsampler._batch.minibatch import MiniBatch, as_torch
from pygsampler._batch.subgraph import Subgraph
from pygsampler._engine.checks import describe
from pygsampler._engine.memory import Memory
from pygsampler._loader.arguments import check_not_function
from pygsampler._sampling import sampler as sampler_base
from pygsampler._sampling.sampler import check_blocks
from pygsampler.pyg import options
from pygsampler.pyg.engine_output import edge_lists
from pygsampler.pyg.graph import graph_of
from pygsampler.pyg.lookahead import (
    LookaheadBatch,
    LookaheadState,
    StopLookahead,
    can_look_ahead,
    is_pure,
)
from pygsampler.pyg.negative_sampling import EdgeTimes, NodesByTime, has_custom_rule, negatives_of
from pygsampler.pyg.sampler_output import output_edges, output_nodes, subgraph_output

if TYPE_CHECKING:
    from pygsampler._batch.induced_edges import InducedEdges
    from pygsampler._batch.minibatch import MiniBatch


class NodeRequest(NamedTuple):
    """A request for a batch around nodes, once it was checked."""

    inputs: NodeSamplerInput
    seeds: Any
    times: Any
    # By which `BatchNumber` knows it.
    named: tuple[torch.Tensor, tuple[bytes, torch.Tensor] | None]


class Sampler(BaseSampler):  # type: ignore[misc]
    """Any ``pygsampler.Sampler`` as a sampler for PyG's loaders.

    ``PGSampler`` takes the arguments of PyG's sampler; this class wraps any sampler:

        sampler = pygsampler.pyg.Sampler(data, pygsampler.PGSampler([5, 10], frontier="new"))
        loader = NodeLoader(data, sampler, input_nodes=data.train_mask, batch_size=1024)

    Graphs, devices, subgraphs and random numbers are as ``PGSampler`` of this module says. Edges
    are grouped by hop, and each has the place of its source among the nodes.

    A batch of a program that returns a subgraph has a node for each seed first, repeated ones too,
    then its other nodes. If the nodes do not depend on the seeds (``samplers.saint_node``), they
    have the order of the program, all of them count for ``batch_size``, and ``input_id`` is their
    ids.

    A program over relations takes a ``HeteroData``, in directional subgraphs. Batches of this
    module's loaders have the values of its edges as ``edge_weights``, and none by other names.

    Vectors and dense rows that a program returns by name are attributes of the batches of this
    module's loaders: a row per node, if they belong to all nodes or to the nodes of a subgraph, and
    a row per input, if they belong to the seeds. Other results, lists, and all results for links
    are dropped.

    Parameters
    ----------
    data : Data, HeteroData, Graph, or (FeatureStore, GraphStore)
        See ``PGSampler``; heterogeneous for a program over relations.
    sampler : pygsampler.Sampler
        Its local ids must be the same in all blocks, as those of ``PGSampler`` are. ``prob`` or
        ``mask`` of a ``pygsampler.PGSampler`` names an attribute of the edges of ``data``.
        ValueError for a sampler of walks or only of vectors.
    subgraph_type, device, is_sorted, sample_direction
        As for ``PGSampler``.
    """

    # PyG's names of the core's options.
    _options_names: ClassVar[Mapping[str, str]] = MappingProxyType({})
    # The class of objects with a program over relations, which a module above this one has.
    _of_relations: ClassVar[type[Sampler]]

    def __init__(
        self,
        data: Any,
        sampler: sampler_base.Sampler[Any],
        *,
        subgraph_type: str | SubgraphType = "directional",
        device: Any = None,
        is_sorted: bool = False,
        sample_direction: str = "forward",
    ) -> None:
        check_not_function(sampler)
        if not isinstance(sampler, sampler_base.Sampler):
            raise TypeError(
                f"sampler: expected a pygsampler.Sampler, got {describe(sampler)}; "
                "pygsampler.pyg.PGSampler takes numbers of neighbors"
            )
        check_blocks(sampler)
        if sampler._names_relations and type(self) is Sampler:
            self.__class__ = self._of_relations
        backward = options.backward(sample_direction)
        self._identity = BatchNumber(sampler.seed, not sampler._numbers.is_drawn)
        self._beginning = LookaheadState()
        self._sampler = sampler
        self.subgraph_type = subgraph_type
        self.keep_orig_edges = False
        self._check_factors()
        in_order = options.flag(is_sorted, "is_sorted")
        # Last, since it may sort many gigabytes.
        self._graph = self._graph_of(data, device, in_order, backward)
        self._sample_direction = sample_direction
        # Now, and by what the array is now: wrong weights are wrong arguments.
        self._edge_array()

    def _graph_of(self, data: Any, device: Any, is_sorted: bool, backward: bool) -> Any:
        """Returns the edges of ``data`` on the device, ``backward`` the reversed ones."""
        array = None
        if self._sampler.edge_array is not None:
            kind, name = self._sampler.edge_array
            array = self._options_names.get(kind, kind), name
        about = array, self._reads(data), self._sampler._row_names
        return graph_of(data, device, is_sorted, backward, *about)

    def _reads(self, data: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Returns which attributes of edges and of nodes of data are read by a batch."""
        return self._sampler.array_names

    def __setattr__(self, name: str, value: Any) -> None:
        options.assignable(name, value)
        super().__setattr__(name, value)

    def __copy__(self) -> Sampler:
        other = object.__new__(type(self))
        own = {"_identity": self._identity.copy(), "_beginning": LookaheadState()}
        other.__dict__.update(self.__dict__, **own)
        return other

    @property
    def disjoint(self) -> bool:
        """True if each seed has a tree of its own."""
        return bool(getattr(self._sampler, "disjoint", False))

    @property
    def subgraph_type(self) -> SubgraphType:
        """Directional, bidirectional or induced."""
        return self._subgraph_type

    @subgraph_type.setter
    def subgraph_type(self, subgraph_type: str | SubgraphType) -> None:
        self._subgraph_type = options.subgraph_type(subgraph_type)

    @property
    def sample_direction(self) -> str:
        """``"forward"`` or ``"backward"``."""
        return self._sample_direction

    @property
    def graph(self) -> Any:
        """The Graph or HeteroGraph that is sampled; backward that of the reversed edges."""
        return self._graph

    @property
    def num_nodes(self) -> Any:
        """Number of nodes of the graph, of each type of a heterogeneous one."""
        return self._graph.num_nodes

    @property
    def num_edges(self) -> Any:
        """Number of edges of the graph, of each type of a heterogeneous one."""
        return self._graph.num_edges

    @property
    def seed(self) -> int:
        """The 64-bit seed of the random numbers."""
        return self._identity.seed

    @property
    def device(self) -> str:
        """The device that it samples on: ``"cpu"`` or, for one, ``"cuda:0"``."""
        device: str = self._graph.device
        return device

    @property
    def edge_permutation(self) -> None:
        """None: the sampled edges have the ids of ``data`` already."""
        return None

    def set_seed(self, seed: int | None) -> None:
        """Sets the seed, from ``-2**63`` to ``2**64 - 1``, in workers that live on too.

        Without ``set_epoch`` calls count from 0 again, so that a seed which is set twice repeats
        its batches. ``None`` goes back to torch's seed.
        """
        self._identity.set_seed(seed)

    def set_epoch(self, epoch: int | None) -> None:
        """Makes later batches a function of ``epoch``, an integer in ``[0, 2**24)``.

        ``None`` goes back to batches that never repeat. Workers see it too, also those that live
        through several epochs.
        """
        self._identity.set_epoch(epoch)

    def sample_from_nodes(self, index: NodeSamplerInput, **kwargs: Any) -> Any:
        """The subgraph around the nodes of ``index``; called by PyG's ``NodeLoader``.

        The nodes are int32 or int64, shape [N]. Returns a ``torch_geometric.sampler.SamplerOutput``
        of tensors where the graph is, with its dtype: ``node`` and ``batch`` have a value for each
        node, ``row``, ``col`` and ``edge`` one for each edge. ``num_sampled_nodes`` (one more than
        hops) and ``num_sampled_edges`` are lists of int, or None but for directional subgraphs.

        In a heterogeneous graph the nodes are of ``index.input_type``, and the result is a
        ``HeteroSamplerOutput`` with all types in its dicts.

        Raises ``TypeError`` for other dtypes, ``IndexError`` for an id that is no node,
        ``NotImplementedError`` for seeds with a type where the graph has none, ``ValueError`` for a
        type that the graph does not have and for seeds with times that nobody asks for,
        ``ClosedError`` for a closed graph and ``CudaError`` where the GPU fails or belongs to the
        parent of a forked process.
        """
        inputs, seeds, times, named = self._request(index, kwargs)
        out = self._sample(seeds, self._identity.number(*named), times)
        known = (inputs.input_id, inputs.time)
        out.metadata = known if self._sampler.is_rooted else (out.node, None)
        return self._finished(out)

    def sample_from_edges(
        self, index: EdgeSamplerInput, neg_sampling: Any = None, **kwargs: Any
    ) -> Any:
        """Samples the subgraph around the ends of the edges of ``index``, for PyG's ``LinkLoader``.

        Parameters
        ----------
        index : EdgeSamplerInput
            The edges. In a heterogeneous graph ``index.input_type`` is their type, of which
            ``data`` need not have any.
        neg_sampling : NegativeSampling, optional
            Binary or triplet. Its random numbers belong to the batch: torch's generator does not
            change.
        **kwargs
            The arguments of ``sample_from_nodes``.

        Returns
        -------
        SamplerOutput or HeteroSamplerOutput
            The result of ``sample_from_nodes``, which also raises the same errors. ``metadata``
            has, as in PyG, the places of the edges' ends among the nodes: ``edge_label_index``,
            shape [2, edges], and ``edge_label``; or for triplets ``src_index``, ``dst_pos_index``
            and ``dst_neg_index``.
        """
        return self._sample_links(index, neg_sampling, kwargs, self._identity.number, self._sample)

    def _request(self, index: NodeSamplerInput, more: dict[str, Any]) -> NodeRequest:
        """Returns what ``sample_from_nodes`` is asked for, or raises an error."""
        inputs = NodeSamplerInput.cast(index)
        options.check_inputs(inputs, "input_time", more, self._is_temporal)
        seeds = options.ids(inputs.node, "input_nodes")
        times = self._times_of(seeds, inputs.time, "input_time")
        named = None if times is None else (b"times", bits(times))
        return NodeRequest(inputs, seeds, times, (seeds, named))

    def _sample_links(
        self,
        index: EdgeSamplerInput,
        neg_sampling: Any,
        more: dict[str, Any],
        number: Callable[..., tuple[int, int]],
        sampled: Callable[..., Any],
        on_negatives: Callable[[Any], None] | None = None,
    ) -> Any:
        """Implements ``sample_from_edges`` for the batch of ``number``, sampled by ``sampled``.

        ``on_negatives`` is called with the negatives, if any, before the batch is sampled.
        """
        if not self._sampler.is_rooted:
            raise ValueError(
                f"sampler: expected one whose nodes are the ends of its edges, got "
                f"{describe(self._sampler)}"
            )
        inputs = EdgeSamplerInput.cast(index)
        sources, targets, name = self._link_ends(inputs, more)
        identity = number(sources, (name, targets))
        kind = inputs.input_type

        def sample(nodes: Any, time: Any) -> Any:
            seeds = options.ids(nodes, "seeds") if kind is None else nodes
            return sampled(seeds, identity, self._times_of(seeds, time, "edge_label_time"))

        known = self._node_time()
        ends = ("", "") if kind is None else (kind[0], kind[-1])
        by_type: Any = {} if neg_sampling is None else {"": known} if kind is None else known or {}
        nodes = (self._nodes_by_time(end, by_type.get(end)) for end in ends)
        when = EdgeTimes(self._compared(inputs.time), *nodes)
        before = self._beginning.negatives
        about = neg_sampling, when, known, self.seed, *identity
        with negatives_of(*about, before=before) as (negatives, times):
            if on_negatives is not None:
                on_negatives(negatives)
            out = edge_sample(
                EdgeSamplerInput(
                    inputs.input_id, sources, targets, inputs.label, inputs.time, kind
                ),
                sample,
                self.num_nodes if kind is None else dict(self.num_nodes),
                self.disjoint,
                times,
                negatives,
            )
        # Its seeds are the ends of links, in an order of their own.
        out.__dict__.pop("beside", None)
        input_id, *others = out.metadata
        node = out.node if kind is None else next(iter(out.node.values()))
        out.metadata = (input_id, *[_value_to(value, node.device) for value in others])
        return self._finished(out)

    def _link_ends(
        self, inputs: EdgeSamplerInput, more: dict[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor, bytes]:
        """Returns sources and targets of links, and the name by which the latter are hashed."""
        options.check_inputs(inputs, "edge_label_time", more, self._is_temporal)
        row, col = (options.ids(ends, "edge_label_index") for ends in (inputs.row, inputs.col))
        return row, col, b"targets"

    def _begin(self, inputs: Any, neg_sampling: Any = None) -> LookaheadBatch | None:
        """Starts the batch of a later call with these arguments, without side effects.

        It takes no number of the sampler, nor of torch's generator. Errors are raised by the later
        call.
        """
        if self.device != "cpu" or not can_look_ahead(self._sampler, self.graph):
            return None
        kept: list[LookaheadBatch] = []
        drawn: list[Any] = []

        def begin(seeds: Any, identity: tuple[int, int], times: Any) -> None:
            self._take_seed()
            job = self._launched(seeds, identity, times, asynchronous=True)
            about = self._sampler, self.graph, seeds, identity, times
            kept.append(LookaheadBatch(job, *about, drawn[0] if drawn else None))
            raise StopLookahead

        def number(*named: Any) -> tuple[int, int]:
            coming = self._identity.next_number(*named)
            if coming is None:
                raise StopLookahead
            return coming

        try:
            if isinstance(inputs, NodeSamplerInput):
                _, seeds, times, named = self._request(inputs, {})
                begin(seeds, number(*named), times)
            elif neg_sampling is None or not has_custom_rule(neg_sampling):
                self._sample_links(inputs, neg_sampling, {}, number, begin, drawn.append)
        except Exception:
            # `Stop`, or what is wrong.
            pass
        return kept[0] if kept else None

    def _result(self, seeds: Any, identity: tuple[int, int], times: Any = None) -> Any:
        """Returns what the engine makes of these seeds."""
        self._take_seed()
        return self._beginning.result(
            partial(self._launched, seeds, identity, times),
            self._sampler,
            self.graph,
            seeds,
            identity,
            times,
        )

    def _take_seed(self) -> None:
        if self._sampler.seed != self.seed:
            self._sampler = self._sampler.with_seed(self.seed)

    def _launched(
        self, seeds: Any, identity: tuple[int, int], times: Any, asynchronous: bool = False
    ) -> Any:
        """Starts that batch; ``asynchronous`` if the caller does other work before it waits."""
        epoch, batch = identity
        sampler: Any = self._sampler
        graph = self.graph
        about: dict[str, Any] = {} if times is None else {"seed_time": times}
        if asynchronous:
            about["asynchronous"] = True
        # One call of the engine instead of two. An induced subgraph has other edges than its hops.
        induces = self._subgraph_type == SubgraphType.induced
        hops = graph._device < 0 and is_pure(sampler) and not induces
        return sampler.launch(
            graph,
            seeds,
            epoch=epoch,
            batch=batch,
            threads=worker_threads(),
            form="edge_lists" if hops else "torch",
            **about,
        )

    # True if seeds have times.
    _is_temporal = False

    def _times_of(self, seeds: Any, bounds: Any, where: str) -> Any:
        """The bounds of seeds; None for a sampler without times."""
        return None

    def _compared(self, times: torch.Tensor | None) -> torch.Tensor | None:
        """Times of seeds as they compare with those of the graph that is sampled."""
        return times

    def _node_time(self) -> Any:
        """The times of nodes, for negatives, by type for a heterogeneous graph, or None."""
        return None

    def _nodes_by_time(self, kind: str, times: torch.Tensor | None) -> NodesByTime | None:
        """The nodes of a type that have these times in the order of them; sorted once."""
        if times is None:
            return None
        known: dict[str, NodesByTime] = self.__dict__.setdefault("_by_time", {})
        found = known.get(kind)
        if found is None:
            found = known[kind] = NodesByTime(times)
        return found

    def _sample(self, seeds: Any, identity: tuple[int, int], times: Any) -> Any:
        """Returns the sampled subgraph of a batch, before ``_finished``."""
        self._check_factors()
        made = self._result(seeds, identity, times)
        induces = self._subgraph_type == SubgraphType.induced
        if type(made) is Memory or (
            not (induces or type(made) is not MiniBatch or made._names)
            and made.form == "array"
            and made.device == "cpu"
        ):
            found = edge_lists(made)
            subgraph_ids = None if found.subgraph_ids is None else found.subgraph_ids[0]
            if not induces:
                numbers = found.num_nodes[0], found.num_edges[0]
                return self._of_hops(found.nodes[0], subgraph_ids, found.edges(), *numbers)
            # It was begun before its type was assigned.
            return self._induced(found.nodes[0], subgraph_ids)
        batch = as_torch(made)
        if isinstance(batch, Subgraph):
            return self._of_subgraph(batch)
        node, num_nodes = output_nodes(batch)
        subgraph_ids = None if batch.subgraph_ids is None else batch.subgraph_ids.to(node.dtype)
        if induces:
            out = self._induced(node, subgraph_ids)
        else:
            edges, num_edges = output_edges(batch)
            out = self._of_hops(node, subgraph_ids, edges, num_nodes, num_edges)
        self._attach_extras(out, batch)
        return out

    def _induced(self, node: torch.Tensor, subgraph_ids: torch.Tensor | None) -> SamplerOutput:
        edges = induced_edges(self._edge_array(), node, subgraph_ids)
        out = SamplerOutput(node, edges.row, edges.col, edges.edge, batch=subgraph_ids)
        out.sort_order = "col"
        return out

    def _of_hops(
        self,
        node: torch.Tensor,
        subgraph_ids: torch.Tensor | None,
        edges: InducedEdges,
        num_nodes: list[int],
        num_edges: list[int],
    ) -> SamplerOutput:
        hops = self._hops(len(num_edges))
        out = SamplerOutput(
            node,
            edges.row,
            edges.col,
            edges.edge,
            batch=subgraph_ids,
            num_sampled_nodes=num_nodes[: hops + 1],
            num_sampled_edges=num_edges[:hops],
        )
        out.sort_order = "col" if edges.ordered else None
        _put_values(out, edges)
        return out

    def _of_subgraph(self, batch: Subgraph) -> SamplerOutput:
        node, edges, old = subgraph_output(batch, self._sampler.is_rooted)
        if self.subgraph_type == SubgraphType.induced:
            edges = induced_edges(self._edge_array(), node, batch.subgraph_ids)
        # The subgraphs of a disjoint sampler have their roots in front, and stay in place.
        subgraph_ids = None if batch.subgraph_ids is None else batch.subgraph_ids.to(node.dtype)
        out = SamplerOutput(node, edges.row, edges.col, edges.edge, batch=subgraph_ids)
        out.sort_order = "col"
        _put_values(out, edges)
        self._attach_extras(out, batch, old)
        return out

    def _attach_extras(self, out: SamplerOutput, batch: MiniBatch, old: Any = None) -> None:
        """Puts a program's results for nodes where our loaders look for them, too."""
        found = extra_arrays(self._sampler, batch, out.node, old)
        if found.of_nodes or found.of_seeds:
            out.beside = {**found.of_nodes, **found.of_seeds}

    def _check_factors(self) -> None:
        """Raises ValueError for factors of edges that are not those that were sampled."""
        if getattr(self._sampler, "edge_weights", None) is None:
            return
        if self.subgraph_type != SubgraphType.directional:
            raise ValueError(
                f"edge_weights: expected None, or subgraph_type='directional', whose edges are "
                f"those that were sampled, got {describe(self.subgraph_type.value)}"
            )

    def _hops(self, num_hops: int) -> int:
        """Returns how many hops were asked for, of a batch that has so many."""
        return num_hops

    def _edge_array(self) -> Any:
        """The graph without the edges that are never sampled."""
        return self._sampler.sampled_graph(self._graph)

    def _finished(self, out: Any) -> Any:
        """``out`` with its edges as they are in the data, and their reverses if asked for."""
        if self.sample_direction == "backward":
            out.row, out.col = out.col, out.row
            out.sort_order = out.sort_order and "row"
        if self.subgraph_type != SubgraphType.bidirectional:
            return out
        if getattr(out, "edge_weights", None) is not None or getattr(out, "edge_values", None):
            raise ValueError(
                "subgraph_type: expected 'directional' or 'induced' for a sampler whose edges have "
                "values, which their reverses have not, got 'bidirectional'"
            )
        out = out.to_bidirectional(keep_orig_edges=self.keep_orig_edges)
        out.sort_order = None
        return out

    def __repr__(self) -> str:
        return f"pygsampler.pyg.Sampler({self._sampler!r}, {self.subgraph_type.value!r})"


def bits(times: torch.Tensor) -> torch.Tensor:
    """Integers that say which times they are."""
    return times.double().view(torch.int64) if times.is_floating_point() else times.long()


def _value_to(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _put_values(out: SamplerOutput, edges: InducedEdges) -> None:
    """Puts values of edges where our loaders look for them: PyG's class has no place."""
    if edges.weight is not None:
        out.edge_weights = edges.weight
    if edges.named:
        out.edge_values = edges.named
