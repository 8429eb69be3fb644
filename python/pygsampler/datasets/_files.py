"""``read`` and ``convert``: graphs from files of edges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygsampler._graph.file import as_path
from pygsampler.datasets import _graphs, _read_options, _sources, _tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pygsampler._engine.progress import Progress
    from pygsampler._graph.graph import Graph
    from pygsampler._graph.schema import EdgeType


def read(
    source: Any,
    *,
    types: EdgeType | Mapping[Any, EdgeType] | None = None,
    relation: str | int | None = None,
    src_type: str | int | None = None,
    dst_type: str | int | None = None,
    format: str | None = None,
    src: Any = None,
    dst: Any = None,
    num_nodes: Any = None,
    undirected: bool = False,
    renumber: bool | None = None,
    dtype: Any = None,
    edge_data: Any = None,
    one_kind: bool = False,
    progress: Progress = None,
) -> Graph:
    """Reads the graph of a file, or of several files, of edges into memory.

    A row of the graph lists its edges in the order of the file, and the id of an edge is the
    number of its line, row or entry, from 0; comments, blank lines and the header do not count.
    A file without edges is a graph without nodes, or with ``num_nodes`` of them.

    A mapping of edge types to sources, ``types`` or a column ``relation`` gives a heterogeneous
    graph, in which ids count within a node type, and so do edges: the id of an edge is the number
    of lines of its type before it. It needs NumPy.
    docs/guide/datasets.md describes the formats.

    Parameters
    ----------
    source : str or os.PathLike, or a list of such
        A regular file; text may be packed with gzip. For Parquet, Arrow and CSV also a folder of
        files, in the order of their names, a pattern such as ``"edges/*.parquet"``, or a list;
        these need pyarrow, and the lines of all are counted on. A mapping of (str, str, str), the
        edge types, to such sources has separate files for the edges of each type.
    types : (str, str, str), or mapping of names to such, optional
        The edge type of all edges, (source type, relation, destination type); or the edge type
        that each name of the column ``relation`` stands for, of which the graph has all, in this
        order.
    relation, src_type, dst_type : str or int, optional
        The columns that say the relation of each edge, and the types of its source and target:
        names, or places from 0, of text or integers, at most 4096 of them. Without ``types`` all
        three; the edge types are those of the file then, as they first occur. Only for the formats
        "snap", "csv", "tsv", "parquet" and "arrow".
    format : {"snap", "csv", "tsv", "parquet", "arrow", "npz", "mtx"}, optional
        By default the suffix of the name decides; ``.txt`` is "snap".
    src, dst : str or int, optional
        The columns of sources and targets: a name, or a place from 0. Without them those with
        usual names (src and dst, source and target, user and item, ...), else the only two; where
        columns have no names, the first two. With edge types also a mapping of these to columns;
        columns that are called as the node types, such as ``user_id`` of "user", come first.
    num_nodes : int, optional
        The number of nodes, if nodes behind the largest id have no edges. For a heterogeneous graph
        a mapping of node types to numbers.
    undirected : bool
        Each of the E edges stands for both directions: the edges that are no self loops are also,
        in their order, the edges from E on, backwards.
    renumber : bool, optional
        True numbers the nodes from 0 by ascending id, and ``graph.node_ids`` has the id of each in
        the file (int64, shape [num_nodes]). Ids may be names then, in columns of text of Parquet,
        Arrow and CSV, which needs pyarrow: ``graph.node_names`` has them, and ``graph.index_of``
        finds nodes by them. False keeps the ids. None is True for the format "snap" if ids have
        gaps and ``num_nodes`` is None, else False, with a warning in the log ("pygsampler") if
        nearly all nodes are gaps. For a heterogeneous graph True numbers each node type from 0, and
        None is False.
    dtype : {"int32", "int64"}, or NumPy's or torch's dtype of that name, optional
        The dtype of ids. By default int32 if both columns are integers of at most 32 bits, else
        int64, as for text.
    edge_data : iterable of str, or mapping of str to columns, optional
        Further columns, by name, that ``graph.edata`` is to have, such as weights; a mapping says
        what each is called there, and takes places from 0 too. Row i is of the edge with id i, and
        with ``undirected`` of its reverse too. bool, integers and floats of Parquet and Arrow keep
        their dtype, without nulls; numbers in text are float64. Dates are int64 nanoseconds since
        1970, which ``PGSampler(temporal=)`` takes as dates; they need pyarrow. Other columns are
        skipped. Not for the formats "npz" and "mtx". With edge types also a mapping of these to
        columns.
    one_kind : bool
        True numbers both columns in one set of nodes though their names say two kinds of things,
        such as ``user_id`` and ``item_id``.
    progress : bool or callable, optional
        True shows a bar (tqdm) over what takes more than two seconds; a function is called with
        (bytes done, bytes in all), and the second may grow.

    Raises
    ------
    OSError
        Where the file cannot be read, such as FileNotFoundError.
    TypeError, ValueError
        For wrong options, and for a file whose content is not as expected; the text names the line
        or row: ``edges.csv:17: src: expected an integer >= 0, got 'x'``. For columns with names
        which do not say what the ends are, or say that these are of two kinds.
    ImportError
        For several files, without pyarrow.
    MemoryError
        Where the machine cannot hold the graph; ``convert`` needs less.
    """
    columns = {"src_type": src_type, "relation": relation, "dst_type": dst_type}
    if _sources.is_schema(source) or any(each is not None for each in (types, *columns.values())):
        from pygsampler.datasets._hetero_edges import read_types

        for name, value in (("undirected", undirected), ("one_kind", one_kind)):
            if value:
                raise ValueError(f"{name}: expected False for a heterogeneous graph, got True")
        anew = False if renumber is None else renumber
        how = edge_data, format, src, dst, dtype, progress
        return read_types(source, types, columns, num_nodes, anew, *how)
    files = _sources.files_of(source, format)
    kind = _sources.format_of(files, format)
    plan = _read_options.plan_of(
        kind, src, dst, num_nodes, undirected, renumber, dtype, edge_data, mixed=one_kind
    )
    return _graphs.graph_of(files, plan, progress)


def convert(
    source: Any,
    target: Any,
    *,
    format: str | None = None,
    src: str | int | None = None,
    dst: str | int | None = None,
    num_nodes: int | None = None,
    undirected: bool = False,
    renumber: bool | None = None,
    dtype: Any = None,
    edge_data: Iterable[str] | Mapping[str, str | int] | None = None,
    one_kind: bool = False,
    progress: Progress = None,
) -> Path:
    """Writes the graph of a file of edges to a graph file, for ``Graph.open``; returns its path.

    The edges are streamed and need not fit in memory: the conversion takes 8 bytes for each node
    (16 with ``undirected``), more where nodes are numbered anew, and some 300 MB. The source is
    read two or three times, and again for each part of the target that memory has room for. (The
    format "npz" is read as a whole.) The target is written as a whole: an error or Ctrl-C leaves
    the old file. An existing file is replaced only if it is a graph file.

    Several files are first copied to a temporary file in the folder of the target: 16 bytes per
    edge, and 8 for each array over the edges. A graph whose ids are names is read as a whole.

    Parameters
    ----------
    source : str or os.PathLike, or a list of such
    target : str or os.PathLike
    format, src, dst, num_nodes, undirected, renumber, dtype, edge_data, one_kind, progress
        See ``read``. The map of the ids is the array "node_ids" of the file, or names.

    Raises
    ------
    OSError, TypeError, ValueError
        For the reasons of ``read``, and if the target cannot be written or the disk is full.
        ValueError for an existing target that is no graph file.
    """
    files = _sources.files_of(source, format)
    wanted = as_path(target, "target")
    kind = _sources.format_of(files, format)
    plan = _read_options.plan_of(
        kind, src, dst, num_nodes, undirected, renumber, dtype, edge_data, mixed=one_kind
    )
    if files.one:
        _read_options.require_file(files.paths[0])
    for path in files.paths:
        _read_options.require_target(wanted, path)
    if kind == "npz":
        with _graphs.graph_of(files, plan, progress) as graph:
            graph.save(wanted)
        return Path(wanted)
    loaded = _tables.load(files, wanted, plan, progress)
    if loaded.memory:
        with _graphs.graph_in(loaded, plan) as graph:
            graph.save(wanted, progress=progress)
    return Path(wanted)


def snap(
    source: Any,
    *,
    num_nodes: int | None = None,
    undirected: bool = False,
    renumber: bool | None = None,
    dtype: Any = None,
    edge_data: Iterable[str] | Mapping[str, str | int] | None = None,
    progress: Progress = None,
) -> Graph:
    """Returns the graph of an edge list in the format of <https://snap.stanford.edu/data>.

    It is ``read(source, format="snap", src=0, dst=1)``, whatever the names of the file and of
    columns: numbers between blanks or tabs, an edge per line, comments behind # or %; packed with
    gzip or not. If the numbering has gaps, nodes are numbered from 0 and
    ``graph.file_arrays["node_ids"]`` has their ids in the file.

    Parameters
    ----------
    source, num_nodes, undirected, renumber, dtype, edge_data, progress
        The arguments of ``read``.
    """
    return read(
        source,
        format="snap",
        src=0,
        dst=1,
        num_nodes=num_nodes,
        undirected=undirected,
        renumber=renumber,
        dtype=dtype,
        edge_data=edge_data,
        progress=progress,
    )
