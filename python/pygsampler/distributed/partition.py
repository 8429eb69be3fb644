"""``Partition``: a graph cut into parts of contiguous nodes, with a file for each."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._arrays.array import Array, as_array
from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._engine.progress import progress_counter
from pygsampler._features.features import Features
from pygsampler._graph.graph import Graph

if TYPE_CHECKING:
    from pygsampler._engine.progress import Progress
    from pygsampler._graph.schema import PerEdgeType, PerNodeType

_ABOUT = "partition.json"
_FORMAT, _VERSION = "pygsampler partition", 1
# Arrays next to a part's graph: the ids of its edges, and the arrays of its nodes.
_EDGE_IDS, _OF_NODES, _TIMES = "ids_of_edges", "of_nodes.", "times."
# The folder of the parts by out-edges, among the others.
_OUT = "out"
# The field that tells the node types and edge types of a heterogeneous graph.
TYPED = "typed"
# The array with the original ids of nodes, as in graph files.
_NODE_IDS = "node_ids"
MOST_PARTS = 1 << 16


class Shard:
    """A part of a graph: the rows of the nodes ``[first, last)``.

    ``Partition.shard`` returns it. Nodes have the whole graph's ids.
    """

    __slots__ = (
        "_by_id",
        "edge_ids",
        "first",
        "first_edge",
        "graph",
        "last",
        "ndata",
        "rank",
        "times",
    )

    # The places of its edges in the order of their ids, and those ids.
    _by_id: tuple[Any, Any] | None
    rank: int
    first: int
    last: int
    first_edge: int
    """How many edges the parts before it have."""
    graph: Graph
    """Row i of its CSC is of node ``first + i``; edges are numbered by their places in it."""
    edge_ids: Array | None
    """The ids of its edges in the whole graph, shape [E]; None: ``first_edge`` and what follows."""
    ndata: Mapping[str, Array]
    """The arrays of its nodes, shape [last - first, ...]."""
    times: Mapping[str, Array]
    """By the names of node arrays, the times of the nodes that its edges lead from, shape [E]:
    those that ``partition(times=)`` was told of."""

    def __init__(self) -> None:
        raise TypeError("Shard: created by Partition.shard only")

    @classmethod
    def _from_graph(cls, rank: int, description: Mapping[str, Any], graph: Graph) -> Shard:
        shard = object.__new__(cls)
        shard._by_id, shard.rank, shard.graph = None, rank, graph
        shard.first, shard.last = description["first"], description["last"]
        shard.first_edge = description["first_edge"]
        shard.edge_ids = graph.file_arrays.get(_EDGE_IDS)
        shard.ndata, shard.times = _named(graph, _OF_NODES), _named(graph, _TIMES)
        return shard

    def places(self, ids: bytes | memoryview) -> bytes:
        """Returns the places, int64, of this part's edges whose ``edge_ids`` are in ``ids``."""
        import numpy

        if self._by_id is None:
            assert self.edge_ids is not None
            own = self.edge_ids.numpy()
            order = numpy.argsort(own, kind="stable")
            self._by_id = order, own[order]
        order, ascending = self._by_id
        given = numpy.frombuffer(ids, numpy.int64)
        ends = (numpy.searchsorted(ascending, given, side).tolist() for side in ("left", "right"))
        found = [order[first:end] for first, end in zip(*ends, strict=True) if first < end]
        return numpy.concatenate([numpy.zeros(0, numpy.int64), *found]).tobytes()

    def __repr__(self) -> str:
        return (
            f"Shard(rank={self.rank}, nodes [{self.first}, {self.last}), "
            f"{self.graph.num_edges} edges)"
        )


class Partition:
    """A partitioned graph: the files of its parts, and the nodes of each.

    ``pygsampler.distributed.partition`` returns it, and ``open`` of the folder that it has written:
    a graph file for each part, and ``partition.json``.
    """

    __slots__ = ("_about", "folder")

    folder: Path
    _about: dict[str, Any]
    # The functions that open and write heterogeneous graphs; their module, which builds on this
    # one, sets both.
    _of_types: ClassVar[Callable[[Path, Any], Partition]]
    _write_types: ClassVar[Callable[..., Partition]]

    def __init__(self) -> None:
        raise TypeError("Partition: use open, or pygsampler.distributed.partition")

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Partition:
        """The parts in a folder; their files are opened when they are asked for.

        Raises
        ------
        OSError
            Where there is no ``partition.json``.
        ValueError
            For one of another format or version, or a damaged one.
        """
        target = Path(folder)
        path, about = target / _ABOUT, description(target)
        if TYPED in about:
            return cls._of_types(target, about[TYPED])
        made = object.__new__(cls)
        made.folder = target
        try:
            ends = [part["last"] for part in about["parts"]]
            firsts = [part["first"] for part in about["parts"]]
            sound = [*firsts, about["num_nodes"]] == [0, *ends] and firsts == sorted(firsts)
            edges = sum(part["num_edges"] for part in about["parts"])
            sound = sound and edges == about["num_edges"] and about["dtype"] in ("int32", "int64")
            sound = (
                sound
                and {"edges", "nodes"} == {*about["arrays"]}
                and about["edge_id_bits"] in (32, 64)
                and isinstance(about["edge_ids"], bool)
            )
        except (KeyError, TypeError):
            sound = False
        if not sound:
            raise ValueError(f"{path}: expected parts that make up a graph, got a damaged one")
        made._about = about
        return made

    @property
    def num_parts(self) -> int:
        """The number of parts."""
        return len(self._about["parts"])

    @property
    def num_nodes(self) -> PerNodeType:
        """The number of nodes of the whole graph; of a heterogeneous one by node type."""
        return int(self._about["num_nodes"])

    @property
    def num_edges(self) -> PerEdgeType:
        """The number of edges of the whole graph; of a heterogeneous one by edge type."""
        return int(self._about["num_edges"])

    @property
    def dtype(self) -> str:
        """``"int32"`` or ``"int64"``: of ids of nodes."""
        return str(self._about["dtype"])

    @property
    def edge_id_bits(self) -> int:
        """The width of ids of edges in samples, 32 or 64."""
        return int(self._about["edge_id_bits"])

    @property
    def has_edge_ids(self) -> bool:
        """True if edges have ids of their own, and not those of their places."""
        return bool(self._about["edge_ids"])

    @property
    def bounds(self) -> tuple[int, ...]:
        """The first node of each part, and the number of nodes."""
        return (*(part["first"] for part in self._about["parts"]), self.num_nodes)

    @property
    def edge_bounds(self) -> tuple[int, ...]:
        """The place of each part's first edge, and the number of edges."""
        return (*(part["first_edge"] for part in self._about["parts"]), self.num_edges)

    @property
    def arrays(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """Named arrays of ``"edges"`` and ``"nodes"``: ``dtype``, and the ``shape`` of a row."""
        found: Mapping[str, Mapping[str, Mapping[str, Any]]] = self._about["arrays"]
        return found

    @property
    def times(self) -> Mapping[str, Mapping[str, Any]]:
        """The node arrays whose values edges have as times, as ``arrays`` has them."""
        found: Mapping[str, Mapping[str, Any]] = self._about.get("times", {})
        return found

    @property
    def out(self) -> Any:
        """The parts of the same graph by its out-edges: row v lists the targets of v.

        It is None if they were not written. For a heterogeneous graph it is a mapping of edge
        types.
        """
        return Partition.open(self.folder / _OUT) if self._about.get("out_edges") else None

    def shard(self, rank: int) -> Shard:
        """Returns the part of number ``rank``, whose file is mapped.

        Raises
        ------
        ValueError, OSError
            For a number of no part, and for a file that is missing or belongs to another part.
        """
        rank = integer(rank, "rank", 0, self.num_parts - 1)
        about = self._about["parts"][rank]
        path = self.folder / about["file"]
        graph = Graph.open(path)
        if (graph.num_nodes, graph.num_edges) != (self.num_nodes, about["num_edges"]):
            raise ValueError(
                f"{path}: expected part {rank} of a graph of {self.num_nodes} nodes, with "
                f"{about['num_edges']} edges, got {graph.num_nodes} and {graph.num_edges}"
            )
        return Shard._from_graph(rank, about, graph)

    def __repr__(self) -> str:
        return (
            f"Partition({str(self.folder)!r}, {self.num_parts} parts, num_nodes={self.num_nodes}, "
            f"num_edges={self.num_edges})"
        )


def partition(
    graph: Graph | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    parts: int,
    *,
    out_edges: bool = False,
    times: Iterable[str] = (),
    replace: bool = False,
    progress: Progress = False,
) -> Partition:
    """Writes a graph as parts of contiguous nodes, which have about as many edges each.

    For a heterogeneous graph each relation, by its destinations, and the arrays of each node type
    are written in this way.

    Nodes and edges keep their ids. Arrays of edges and nodes are written with the part that has
    them. One part at a time is in memory, or none if the graph is mapped from a file.

    Parameters
    ----------
    graph : Graph, or the path of a graph file
        A graph on the CPU.
    folder : path
        The folder of the parts; it must not exist.
    parts : int
        The number of parts, at least 1. Parts beyond the number of nodes are empty.
    out_edges : bool
        True writes the out-edges too, for walks along them: as large again. The graph by its
        out-edges is built in memory, unless the file has it.
    times : iterable of str
        Names of node arrays for ``PGSampler(temporal=)``: integers or floating-point numbers, shape
        [N]. A part gets the time of the source of each of its edges, since the source may belong to
        another part.
    replace : bool
        True replaces an existing folder of parts.
    progress : bool or callable
        See ``Graph.save``, but in edges.

    Raises
    ------
    FileExistsError
        If the folder exists, and ``replace`` is false or it is no folder of parts.
    TypeError, ValueError, OSError
        For other arguments, and if it cannot be written.
    """
    count = integer(parts, "parts", 1, MOST_PARTS)
    both, names = boolean(out_edges, "out_edges"), names_of(times)
    target = Path(folder)
    check_target(target, replace)
    if not isinstance(graph, Graph):
        if not isinstance(graph, (str, os.PathLike)):
            raise TypeError(f"graph: expected a Graph or the path of one, got {describe(graph)}")
        with Graph.open(graph) as opened:
            options: dict[str, Any] = {"replace": replace, "progress": progress}
            return partition(opened, folder, count, out_edges=both, times=names, **options)
    if graph.device != "cpu":
        raise ValueError(f"graph: expected one on the CPU, got one on {graph.device}")
    if not graph.is_homogeneous:
        return Partition._write_types(graph, target, count, both, names, progress)
    of_sources = {
        name: checked_times(f"times[{i}]", name, graph.ndata) for i, name in enumerate(names)
    }
    with atomic_folder(target) as made:
        write_parts(graph, made, count, progress, both, of_sources)
    return Partition.open(target)


def write_parts(
    graph: Graph,
    folder: Path,
    count: int,
    progress: Progress,
    out_edges: bool = False,
    of_sources: Mapping[str, Array] | None = None,
) -> None:
    """Writes a graph's parts into a folder, with times of the nodes that edges lead from."""
    about = written(graph, folder, count, progress, of_sources)
    if out_edges:
        (folder / _OUT).mkdir()
        outward = Graph._wrap(graph._source._walked("out"))
        describe_parts(folder / _OUT, written(outward, folder / _OUT, count, progress))
    describe_parts(folder, {**about, "out_edges": out_edges})


def names_of(times: Any) -> list[str]:
    """The names of node arrays in ``times``; TypeError for others."""
    if isinstance(times, str):
        raise TypeError(f"times: expected names of node arrays, got one name, {times!r}")
    names = list(times)
    for place, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"times[{place}]: expected a name, got {describe(name)}")
    return names


def checked_times(where: str, name: str, ndata: Mapping[str, Array]) -> Array:
    """The node array of that name; ValueError for one that is none of times."""
    values = ndata.get(name)
    if values is None:
        have = ", ".join(map(repr, ndata)) or "none"
        raise ValueError(
            f"{where}: expected the name of a node array of the graph ({have}), got {name!r}"
        )
    if len(values.shape) != 1 or values.dtype not in ("int32", "int64", "float32", "float64"):
        raise ValueError(
            f"{where}: expected an array of times, int32, int64, float32 or float64 of shape [N], "
            f"got {name!r} of {values.dtype}, shape {tuple(values.shape)}"
        )
    return values


def check_target(target: Path, replace: bool) -> None:
    """Raises FileExistsError where something is there that is no folder of parts, or is to stay."""
    if target.exists() and not (boolean(replace, "replace") and (target / _ABOUT).is_file()):
        raise FileExistsError(f"{target}: expected a folder that is not there, got one that is")


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """A folder that gets its name when all of it is there, in the place of one that is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield made
        made.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def description(folder: Path) -> dict[str, Any]:
    """Reads the description of the parts in a folder; OSError, ValueError where there is none."""
    path = folder / _ABOUT
    try:
        about = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON, got {error}") from None
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise ValueError(f"{path}: expected the description of a partitioned graph, got another")
    if about.get("version") != _VERSION:
        raise ValueError(
            f"{path}: expected version {_VERSION}, got {about.get('version')!r}; another "
            "version of pygsampler wrote it"
        )
    return about


def describe_parts(folder: Path, description: dict[str, Any]) -> None:
    """Writes what a folder says of its parts."""
    whole_ = {"format": _FORMAT, "version": _VERSION, **description}
    (folder / _ABOUT).write_text(json.dumps(whole_, indent=1) + "\n")


def written(
    graph: Graph,
    folder: Path,
    count: int,
    progress: Progress,
    of_sources: Mapping[str, Array] | None = None,
) -> dict[str, Any]:
    """Writes the parts, and describes them."""
    times = {} if of_sources is None else of_sources
    rows = len(graph.indptr) - 1
    bounds = _bounds(graph.indptr, graph.num_nodes, count)
    ids, of_nodes = graph.edge_ids, dict(graph.ndata)
    if _NODE_IDS in graph.file_arrays:
        of_nodes.setdefault(_NODE_IDS, graph.file_arrays[_NODE_IDS])
    arrays = {"edges": graph.edata, "nodes": of_nodes}
    about: list[dict[str, Any]] = []
    with progress_counter(progress, graph.num_edges, "partition", " edges") as report:
        for rank in range(count):
            first, last = bounds[rank], bounds[rank + 1]
            # Trailing nodes may have no place in indptr.
            offsets = graph.indptr[min(first, rows) : min(last, rows) + 1]
            start, end = offsets[0], offsets[-1]
            name = f"part-{rank:05d}.pgs"
            _part(graph, offsets, start, end, ids).save(
                folder / name,
                arrays={
                    **({} if ids is None else {_EDGE_IDS: ids[start:end]}),
                    **{f"{_OF_NODES}{k}": rows_[first:last] for k, rows_ in of_nodes.items()},
                    **{
                        f"{_TIMES}{k}": _read_rows(rows_, graph.indices[start:end])
                        for k, rows_ in times.items()
                    },
                },
            )
            about.append(
                {
                    "file": name,
                    "first": first,
                    "last": last,
                    "first_edge": start,
                    "num_edges": end - start,
                }
            )
            report(end - start)
    width = 64 if graph.num_edges > 2**31 - 1 or graph.dtype == "int64" else 32
    return {
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "dtype": graph.dtype,
        "edge_id_bits": width if ids is None else ids._bits,
        "edge_ids": ids is not None,
        "arrays": {
            kind: {
                name: {"dtype": values.dtype, "shape": list(values.shape[1:])}
                for name, values in named.items()
            }
            for kind, named in arrays.items()
        },
        "times": {name: {"dtype": values.dtype, "shape": []} for name, values in times.items()},
        "parts": about,
    }


def _named(graph: Graph, prefix: str) -> dict[str, Array]:
    """The arrays whose names begin so, by what follows."""
    found = graph.file_arrays.items()
    return {k.removeprefix(prefix): values for k, values in found if k.startswith(prefix)}


def _part(graph: Graph, offsets: Array, start: int, end: int, ids: Array | None) -> Graph:
    """The rows whose offsets those are, as a graph of the same nodes."""
    rebased = offsets.numpy() - start
    edata = {
        name: values[start:end] if ids is None else _read_rows(values, ids[start:end])
        for name, values in graph.edata.items()
    }
    return Graph.from_csc(
        rebased, graph.indices[start:end], num_nodes=graph.num_nodes, edge_data=edata
    )


def _read_rows(values: Array, ids: Array) -> Array:
    """Rows by their numbers."""
    return as_array(Features.from_tensor(values).read(ids), "edge_data")


def _bounds(indptr: Sequence[int] | Array, num_nodes: int, count: int) -> list[int]:
    """Returns where parts begin, and the end, so that each has about as many edges."""
    rows = len(indptr) - 1
    edges = indptr[rows]
    if not edges:
        return [num_nodes * rank // count for rank in range(count + 1)]
    found = [0]
    for rank in range(1, count):
        goal = -(-edges * rank // count)
        at = bisect_left(range(rows + 1), goal, lo=found[-1], key=indptr.__getitem__)
        # The nearer of two, where a hub's row lies across.
        if at > found[-1] and goal - indptr[at - 1] < indptr[at] - goal:
            at -= 1
        found.append(at)
    return [*found, num_nodes]
