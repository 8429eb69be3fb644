"""VR-GCN's history: what nodes sent when they were last computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pygsampler._engine.checks import describe, integer
from pygsampler._graph.graph import Graph, is_homogeneous

if TYPE_CHECKING:
    import torch

__all__ = ["History"]

_MOST = (1 << 31) - 1


class History:
    """The last known rows of all nodes, for VR-GCN (Chen et al., 2018); it needs torch.

    The sum of a h(u) over all in-edges of v is estimated by the sum of w a (h(u) - o(u)) over the
    sampled edges, plus the sum of a o(u) over all edges. o(u) is the row of u when it was last
    computed, and w is the d / K of ``samplers.vrgcn``. The estimate is unbiased, and it is better
    the nearer o is to h.

        history = samplers.learned.History(graph, [256])
        ...
        heard = history.aggregate(0, block, rows)       # rows: of the block's sources
        history.update(0, block.src_nodes, rows)

    Parameters
    ----------
    graph : Graph
        The graph whose columns are read in full. The history is on its device, the CPU or a GPU.
    widths : sequence of int
        The width of the rows of each layer; ``widths[i] * num_nodes`` numbers are stored.
    dtype : torch.dtype, optional
        The dtype of the rows; float32 by default.

    Attributes
    ----------
    tables : list of tensors of shape [num_nodes, width]
        The rows, 0 at first.

    Notes
    -----
    A history draws nothing, so loaders may prefetch any number of batches. It belongs to one
    training loop: it has no lock.
    """

    def __init__(self, graph: Graph, widths: Sequence[int], *, dtype: Any = None) -> None:
        try:
            import torch
        except ImportError:
            raise ImportError("History: expected torch, found none; pip install torch") from None
        if not is_homogeneous(graph):
            raise TypeError(f"graph: expected a pygsampler.Graph, got {describe(graph)}")
        if isinstance(widths, (str, bytes)) or not isinstance(widths, Sequence):
            raise TypeError(f"widths: expected a list of int, got {describe(widths)}")
        sizes = [integer(width, f"widths[{i}]", 1, _MOST) for i, width in enumerate(widths)]
        self._graph = graph
        self._version = 0
        device = torch.device(graph.device)
        kind = torch.float32 if dtype is None else dtype
        self.tables: list[torch.Tensor] = [
            torch.zeros(graph.num_nodes, width, dtype=kind, device=device) for width in sizes
        ]

    @property
    def version(self) -> int:
        """The number of times that rows have been changed."""
        return self._version

    def read(self, layer: int, nodes: torch.Tensor) -> torch.Tensor:
        """Returns the rows of ``nodes`` in ``layer``, shape [N, width], without a gradient.

        The result is a copy.
        """
        return self._table(layer).index_select(0, nodes.long())

    def update(self, layer: int, nodes: torch.Tensor, rows: torch.Tensor) -> int:
        """Stores ``rows``, shape [N, width], of distinct ``nodes`` in ``layer``; returns a version.

        Raises
        ------
        ValueError
            For another shape, or a layer that the history does not have.
        """
        table = self._table(layer)
        _check(rows, (len(nodes), table.shape[1]))
        table[nodes.long()] = rows.detach().to(table.dtype)
        self._version += 1
        return self._version

    def aggregate(
        self, layer: int, block: Any, rows: torch.Tensor, a: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The estimate of each destination's sum over all of its in-edges.

        Parameters
        ----------
        layer : int
            Whose history it is.
        block : Block
            Of ``samplers.vrgcn``.
        rows : tensor of shape [num_src_nodes, width]
            What its sources send now; gradients go to them.
        a : tensor of shape [edges], optional
            The coefficient of each edge of the graph, by its id. 1 / d of a destination of d edges
            by default, which makes means.

        Returns
        -------
        torch.Tensor
            Of shape [num_dst_nodes, width] and the dtype of ``rows``.

        Raises
        ------
        ValueError
            For another shape, a layer that it has not, or a block without weights.
        """
        import torch

        from pygsampler._batch.block import Block
        from pygsampler._batch.induced_edges import in_edges

        table = self._table(layer)
        _check(rows, (block.num_src_nodes, table.shape[1]))
        weights = block.edge_data.get("w")
        if weights is None:
            raise ValueError("block: expected one of samplers.vrgcn, got one without weights")
        begins, sources, edges = in_edges(self._graph, block.dst_nodes)
        degrees = begins.diff()
        if a is None:
            each = (1 / degrees.to(rows.dtype)).repeat_interleave(block.indptr.diff().long())
        else:
            each = a[block.edge_ids.long()].to(rows.dtype)
        # By ids of the graph: the rows are read where they are.
        numbers = torch.arange(len(sources), device=sources.device)
        whole = Block._of_arrays(begins, numbers, edges, sources, block.dst_nodes)
        if a is None:
            before = whole.mean(table, of=sources)
        else:
            before = whole.weighted_sum(table, a[edges].to(table.dtype), of=sources)
        changed = rows - self.read(layer, block.src_nodes).to(rows.dtype)
        found: torch.Tensor = block.weighted_sum(changed, weights.to(rows.dtype) * each)
        return found + before.to(rows.dtype)

    def state_dict(self) -> dict[str, Any]:
        """``"version"``, and copies of the tables as ``"tables"``."""
        return {"version": self._version, "tables": [table.clone() for table in self.tables]}

    def load_state_dict(self, saved_state: Mapping[str, Any]) -> None:
        """Restores the state ``saved_state``, a result of ``state_dict``.

        Raises
        ------
        TypeError, ValueError
            For an object that is no mapping, for other names, and for tables of other shapes.
        """
        if not isinstance(saved_state, Mapping):
            raise TypeError(f"state: expected a mapping, got {describe(saved_state)}")
        if set(saved_state) != {"version", "tables"}:
            raise ValueError(
                f"state: expected version and tables, got {', '.join(map(str, saved_state))}"
            )
        version = integer(saved_state["version"], "state: version", 0)
        shapes = [tuple(table.shape) for table in saved_state["tables"]]
        if shapes != (expected := [tuple(table.shape) for table in self.tables]):
            raise ValueError(f"state: expected tables of shapes {expected}, got {shapes}")
        for table, values in zip(self.tables, saved_state["tables"], strict=True):
            table.copy_(values)
        self._version = version

    def _table(self, layer: int) -> torch.Tensor:
        return self.tables[integer(layer, "layer", 0, len(self.tables) - 1)]

    def __repr__(self) -> str:
        widths = [table.shape[1] for table in self.tables]
        return f"History(widths={widths}, version={self._version})"


def _check(tensor: Any, shape: tuple[int, int]) -> None:
    found = tuple(getattr(tensor, "shape", ()))
    if found != shape:
        raise ValueError(f"rows: expected shape {shape}, got {found}")
