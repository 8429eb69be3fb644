"""``HeteroProgram``: programs over relations of a heterogeneous graph."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pygsampler._batch.minibatch import MiniBatch, as_torch
from pygsampler._batch.split_by_type import split_by_type
from pygsampler._engine.checks import describe
from pygsampler._graph.graph import Graph, is_heterogeneous
from pygsampler._graph.schema import TYPE, check_by_type
from pygsampler._sampling.hetero_inputs import homogeneous_ids, ids_in_homogeneous
from pygsampler._sampling.pending import MappedJob, PendingBatch
from pygsampler.programs._language.reports import Explanation
from pygsampler.programs.program_sampler import ProgramSamplerWithInputs

if TYPE_CHECKING:
    import torch

    from pygsampler._graph.homogeneous import HomogeneousView
    from pygsampler._graph.schema import EdgeType

__all__ = ["HeteroProgram"]


def __dir__() -> list[str]:
    return sorted(__all__)


class HeteroProgram(ProgramSamplerWithInputs[MiniBatch]):
    """A sampler of a heterogeneous graph, from a program over relations; see ``program``.

    It is one plan over one graph: the relations that the program names, in its order, as
    ``Graph.to_homogeneous`` concatenates them. The merged graph is built at the first batch and
    stored with the heterogeneous graph: other relations, and their order, change no sample. Seeds
    are a mapping of node types to ids.

    A batch is a ``MiniBatch`` of all types of the graph, on its device. ``blocks`` has for each
    matrix that the program returned, outermost hop first, its edges by edge type; an induced
    subgraph is one matrix, and seeds that the subgraph lacks have -1 in ``output_index``. Vectors
    in ``extra`` are in the order of the concatenated graph. A list of nodes has ids within the
    types, and another array, whose name ends with ``_type``, such as ``extra["v_type"]``, has the
    position of each node's type among the types of the graph.

    Parameters
    ----------
    program : Program
        The program over the merged graph.
    relations : sequence of (str, str, str)
        The edge types that the program names, in its order.
    lists : sequence of str
        The names of results that are lists of nodes.
    """

    _takes_types = True
    _names_relations = True
    edge_values = "w"

    def __init__(self, program: Any, relations: Sequence[EdgeType], lists: Sequence[str]) -> None:
        # The program is one of the joined graph.
        super().__init__(program)
        self._relations, self._lists = tuple(relations), tuple(lists)
        for name in lists:
            if f"{name}_type" in program._extras:
                raise ValueError(
                    f"{program.name}: expected another name than {name + '_type'!r}, which the "
                    f"types of the nodes {name!r} have"
                )

    @property
    def plan(self) -> Hashable:
        """The program's plan and its relations."""
        return self._program.plan, self._relations

    @property
    def result_kind(self) -> str:
        """``"blocks"``, or ``"vectors"`` for a program that returns arrays by name alone."""
        kind = super().result_kind
        return "blocks" if kind == "subgraph" else kind

    @property
    def array_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the edge and of the node arrays that the program reads, of its relations."""
        edges, nodes = self._program.array_names
        return (
            tuple(name for name in edges if name != TYPE),
            tuple(name for name in nodes if name != TYPE),
        )

    @property
    def relations(self) -> tuple[EdgeType, ...]:
        """The relations that the program names, in order."""
        return self._relations

    def _joint(self, graph: Any) -> HomogeneousView:
        if not is_heterogeneous(graph):
            raise TypeError(
                f"graph: expected a heterogeneous graph, of which {self.name} takes "
                f"{self._relations[0]}, got {describe(graph)}"
            )
        for kind in self._relations:
            if kind not in graph.edge_types:
                known = ", ".join(map(str, graph.edge_types))
                raise ValueError(f"{self.name}: expected relations among {known}, got {kind}")
        edges, nodes = self.array_names
        return graph._joint(
            self._relations,
            self._relations[0][0],
            tuple(sorted(edges)),
            tuple(sorted(nodes)),
        )

    def _graph(self, graph: Any) -> Any:
        return self._joint(graph).graph

    def _program_inputs(self, graph: Any, seeds: Any) -> tuple[Any, Any]:
        joint = self._joint(graph)
        return joint.graph, homogeneous_ids(seeds, graph, joint)

    def _excluded(self, graph: Any, joint: HomogeneousView, exclude: Any) -> Any:
        """Returns the ids of excluded edges in the homogeneous view; None without any."""
        if exclude is None:
            return None
        counts = {kind: graph[kind]._relation._row_counts()[0].number for kind in joint.edges}
        of_types = check_by_type(exclude, "exclude", joint.edges, "the program")
        return ids_in_homogeneous(of_types, "exclude", joint.edges, counts, "int64", graph._device)

    def recompute(
        self,
        graph: Any,
        batch: Any,
        tensors: Mapping[str, torch.Tensor],
        *,
        exclude: Any = None,
    ) -> tuple[list[dict[EdgeType, dict[str, torch.Tensor]]], dict[str, torch.Tensor]]:
        """Computes the values of a batch once more, by torch, as ``Program.recompute`` does.

        Parameters
        ----------
        graph, batch, tensors
            As for ``Program.recompute``.
        exclude : mapping of relations to int32 or int64, shape [K], optional
            The edges that the batch left out.

        Returns
        -------
        edge_data : list of dict of edge types to dict of str to torch.Tensor
            For each block and relation of the program the values of its edges by name, ``"w"``
            too, shape [num_edges].
        extra : dict of str to torch.Tensor
            Vectors and dense rows, as ``batch.extra`` has them; no lists.

        Raises
        ------
        TypeError, ValueError
            As ``Program.recompute``.
        """
        from pygsampler.programs.recomputed import homogeneous_batch

        joint = self._joint(graph)
        given = homogeneous_batch(as_torch(batch), joint)
        without = self._excluded(graph, joint, exclude)
        edge_data, extra = self._program.recompute(joint.graph, given, tensors, exclude=without)
        by_type: list[dict[EdgeType, dict[str, torch.Tensor]]] = []
        for values, counts in zip(edge_data, given.counts, strict=True):
            parts = {name: of.split(counts) for name, of in values.items()}
            by_type.append(
                {
                    kind: {name: of[place] for name, of in parts.items()}
                    for place, kind in enumerate(joint.edges)
                }
            )
        return by_type, extra

    def explain(self, graph: Graph, seeds: int = 1024, *, batches: int = 0) -> Explanation:
        """Explains the program on the merged relations of ``graph``, as ``Program.explain`` does.

        Parameters
        ----------
        graph : HeteroGraph
            The graph to sample.
        seeds, batches
            The arguments of ``Program.explain``; measured batches have nodes at equal distances
            among all types.
        """
        text = super().explain(graph, seeds, batches=batches)
        names = ", ".join(map(str, self._relations))
        return Explanation(f"one graph, put together of {names}\n{text}")

    def launch(
        self,
        graph: Any,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        form: str = "array",
        asynchronous: bool = False,
    ) -> PendingBatch[MiniBatch]:
        """Starts a batch as ``Sampler.launch`` does.

        Parameters
        ----------
        exclude : mapping of relations to int32 or int64 ids, optional
            Edges to leave out.
        graph, seeds, epoch, batch, threads, form, asynchronous
            The arguments of ``Sampler.launch``.
        """
        joint = self._joint(graph)
        without = self._excluded(graph, joint, exclude)
        job = self._program.launch(
            joint.graph,
            homogeneous_ids(seeds, graph, joint),
            epoch=epoch,
            batch=batch,
            exclude=without,
            threads=threads,
            form=form,
            asynchronous=asynchronous,
        )
        return MappedJob(job, lambda batch: split_by_type(batch, joint, self._lists, form))

    def __repr__(self) -> str:
        return f"{self._program!r} over {', '.join(map(str, self._relations))}"
