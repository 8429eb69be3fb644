"""The packages of Debian 12 and their relations (docs/guide/debian.md)."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, overload

try:
    import numpy as np
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "pygsampler.datasets needs NumPy: pip install numpy", name=error.name
    ) from None

from pygsampler._engine.checks import boolean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pygsampler._graph.graph import Graph


@dataclass(frozen=True, eq=False, repr=False)
class Debian:
    """A graph of software packages: an edge says that package ``src`` names package ``dst``.

    N packages, E edges; node v is the package names[v], edge e is src[e] -> dst[e].

    Attributes
    ----------
    title : str
        Which release and day the metadata is of.
    names : tuple of str
        The N package names, ascending.
    src, dst : int64, shape [E]
        The edges, ordered by (src, kind, dst).
    kind : uint8, shape [E]
        What the edge says, as a position in ``kinds``.
    kinds : tuple of str
        "Depends", "Recommends", "Suggests", "Enhances", "Pre-Depends".
    labels : int64, shape [N]
        The section of the archive, as a position in ``classes``.
    classes : tuple of str
        The names of the sections, ascending.
    word_indptr, word_indices : int64, shapes [N + 1] and [W]
        CSR of the words of each package's short description, as positions in ``vocabulary``.
    vocabulary : tuple of str
        The 512 commonest words, ascending.
    source, maintainer : int64, shape [N]
        Numbers of the source package that the package is built from, and of its maintainer.
    train, val, test : int64
        The ids of 30, 10 and 60 % of the packages, ascending; always the same.
    """

    title: str
    names: tuple[str, ...]
    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    kind: NDArray[np.uint8]
    kinds: tuple[str, ...]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    word_indptr: NDArray[np.int64]
    word_indices: NDArray[np.int64]
    vocabulary: tuple[str, ...]
    source: NDArray[np.int64]
    maintainer: NDArray[np.int64]
    train: NDArray[np.int64]
    val: NDArray[np.int64]
    test: NDArray[np.int64]

    @property
    def num_nodes(self) -> int:
        return len(self.names)

    @property
    def num_edges(self) -> int:
        """The number of relations; ``graph()`` has each in both directions."""
        return len(self.src)

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def num_features(self) -> int:
        return len(self.vocabulary)

    def graph(self, *, directed: bool = False) -> Graph:
        """Returns the graph to sample from, with int64 ids; symmetric unless ``directed``.

        Relation e is edge e, from the package to the package that it names. Unless ``directed``,
        edge num_edges + e is the same relation backwards, so that a package also hears from the
        packages that name it. A pair of packages related in two ways has two parallel edges.
        """
        from pygsampler._graph.graph import Graph

        src, dst = self.src, self.dst
        if not directed:
            src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
        return Graph.from_coo(src, dst, num_nodes=self.num_nodes)

    def hetero_graph(self, *, directed: bool = False) -> Graph:
        """Returns the heterogeneous graph of packages; symmetric unless ``directed``.

        Its nodes are packages, the sources that they are built from, and maintainers. Its edge
        types are the relations of each kind, ``("package", "Depends", "package")`` and so on, in
        the order of ``kinds``; ``("source", "builds", "package")`` and ``("maintainer",
        "maintains", "package")``, whose edge v leads to package v. Unless ``directed``, each of
        these also has its reverse, ``("package", "rev_Depends", "package")``, with the same edge
        ids. ``ndata["package"]["label"]`` are the labels, and ``edata[...]["relation"]`` of the
        kinds has the relation of each edge.
        """
        from pygsampler._graph.graph import Graph

        edges: dict[tuple[str, str, str], tuple[Any, Any]] = {}
        relations = {}
        everyone = np.arange(self.num_nodes)
        for number, kind in enumerate(self.kinds):
            these = np.flatnonzero(self.kind == number)
            relations[kind] = these
            edges["package", kind, "package"] = self.src[these], self.dst[these]
        edges["source", "builds", "package"] = self.source, everyone
        edges["maintainer", "maintains", "package"] = self.maintainer, everyone
        of_edges = {
            kind: {"relation": relations[kind[1]]} for kind in edges if kind[1] in relations
        }
        if not directed:
            for (src, name, dst), ends in list(edges.items()):
                back = dst, f"rev_{name}", src
                edges[back] = ends[::-1]
                if name in relations:
                    of_edges[back] = {"relation": relations[name]}
        return Graph.from_coo(
            edges,
            num_nodes={
                "package": self.num_nodes,
                "source": int(self.source.max()) + 1,
                "maintainer": int(self.maintainer.max()) + 1,
            },
            edge_data=of_edges,
            node_data={"package": {"label": self.labels}},
        )

    def features(self, dtype: Any = "float32") -> NDArray[Any]:
        """Returns the words as a dense matrix of ``dtype``, shape [N, 512].

        It has 1 where the description has the word, else 0. It takes 130 MB as float32;
        ``word_indptr`` and ``word_indices`` say the same in 2 MB.
        """
        matrix = np.zeros((self.num_nodes, self.num_features), dtype=dtype)
        rows = np.repeat(np.arange(self.num_nodes), np.diff(self.word_indptr))
        matrix[rows, self.word_indices] = 1
        return matrix

    def words(self) -> NDArray[np.int64]:
        """The words as rows of equal length [N, 19], padded with num_features.

        For an embedding table with num_features + 1 rows, where a sum of rows is what a product
        with ``features()`` would be, at a hundredth of the work.
        """
        count = np.diff(self.word_indptr)
        table = np.full((self.num_nodes, int(count.max())), self.num_features, dtype=np.int64)
        rows = np.repeat(np.arange(self.num_nodes), count)
        table[rows, np.arange(len(rows)) - self.word_indptr[rows]] = self.word_indices
        return table

    def __repr__(self) -> str:
        return (
            f"Debian(num_nodes={self.num_nodes}, num_edges={self.num_edges}, "
            f"num_classes={self.num_classes}, num_features={self.num_features}, "
            f"title={self.title!r})"
        )


@overload
def debian(hetero: Literal[False] = False) -> Debian: ...
@overload
def debian(hetero: Literal[True]) -> Graph: ...
def debian(hetero: bool = False) -> Any:
    """Loads the data set, which is part of the package; nothing is downloaded.

    63,666 packages, 351,419 relations of five kinds, 58 classes.

    Parameters
    ----------
    hetero : bool
        True returns the heterogeneous graph, ``debian().hetero_graph()``. Features, names and the
        split are those of ``debian()``.
    """
    if boolean(hetero, "hetero"):
        return debian().hetero_graph()
    file = resources.files(__package__).joinpath("debian.npz")
    with file.open("rb") as opened, np.load(opened, allow_pickle=False) as packed:
        raw: dict[str, NDArray[Any]] = {name: packed[name] for name in packed.files}

    def strings(name: str) -> tuple[str, ...]:
        return tuple(raw[name].tobytes().decode().split("\n"))

    def integers(name: str) -> NDArray[np.int64]:
        return raw[name].astype(np.int64)

    def part(number: int) -> NDArray[np.int64]:
        return np.flatnonzero(raw["split"] == number).astype(np.int64)

    names = strings("names")
    return Debian(
        title=strings("title")[0],
        names=names,
        src=np.repeat(np.arange(len(names), dtype=np.int64), raw["out_degree"]),
        dst=integers("dst"),
        kind=raw["kind"],
        kinds=strings("kinds"),
        labels=integers("labels"),
        classes=strings("classes"),
        word_indptr=np.concatenate([[0], np.cumsum(raw["word_count"], dtype=np.int64)]),
        word_indices=integers("word"),
        vocabulary=strings("vocabulary"),
        source=integers("source"),
        maintainer=integers("maintainer"),
        train=part(0),
        val=part(1),
        test=part(2),
    )
