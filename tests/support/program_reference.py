"""Programs once more, slowly and in plain Python.

Written from docs/developer/operator-rules.md and not from the engine. A program is its text, a line
a node; its types are expected to be right. Values that no result needs are not computed, unless
``everything`` is True.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from program_numbers import (
    CANDIDATE,
    EDGE,
    INDEX,
    MAPS,
    REDUCTIONS,
    ROW,
    WALK,
    BatchError,
    Numbers,
    bits_of_draw,
    capped,
    checked,
    choose_vertices,
    dependent_of_column,
    dot,
    draws_of_column,
    labor_factors,
    largest_places,
    level_factor,
    projected,
    race_of_column,
    reduced,
    single,
)
from reference import choose


class GraphLists(Protocol):
    """A graph in lists: a CSC, and arrays by name, of edges by their ids and of vertices."""

    indptr: list[int]
    indices: list[int]
    edge_ids: list[int] | None
    num_nodes: int
    edge_data: dict[str, list[float]]
    node_data: dict[str, list[Any]]


# The text


@dataclass
class Node:
    op: str
    inputs: list[int]
    attrs: dict[str, str]


@dataclass
class Program:
    nodes: list[Node]
    result: str
    returned: list[int]
    extras: dict[str, int]
    # For each extra with values of edges, the place in the result of the matrix with these edges.
    of_edges: dict[str, int]
    # The places of matrices whose own values are left out.
    bare: set[int]

    @cached_property
    def needed(self) -> set[int]:
        """The nodes that the result is made of."""
        found: set[int] = set()
        left = [*self.returned, *self.extras.values()]
        while left:
            i = left.pop()
            if i not in found:
                found.add(i)
                left += self.nodes[i].inputs
        return found


# The operators that create a matrix from some edges of another.
CHOOSE = {"individual", "collective", "dependent", "filter", "top_k", "merge", "extract"}
INPUTS = re.compile(r"%(\d+)(?:, |$| )")
ATTRIBUTE = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)(?: |$)')
EXTRA = re.compile(r'("(?:[^"\\]|\\.)*")(?:\[(\d+)\])?=%(\d+)(?: |$)')


def name_of(attrs: dict[str, str]) -> str:
    return unquoted(attrs["name"])


def unquoted(text: str) -> str:
    """A name in Go's quotes, whose escapes are Python's too."""
    return str(ast.literal_eval(text))


def _inputs(text: str) -> tuple[list[int], str]:
    found = []
    while match := INPUTS.match(text):
        found.append(int(match[1]))
        text = text[match.end() :]
    return found, text


def parse(code: str) -> Program:
    """The program of a text: ``%0 = seeds``, ..., ``return blocks %2 "name"=%1``."""
    *lines, last = code.rstrip("\n").split("\n")
    nodes = []
    for i, line in enumerate(lines):
        head, _, rest = line.partition(" = ")
        assert head == f"%{i}", line
        op, _, rest = rest.partition(" ")
        inputs, rest = _inputs(rest)
        attrs = {}
        while match := ATTRIBUTE.match(rest):
            attrs[match[1]] = match[2]
            rest = rest[match.end() :]
        assert not rest, line
        nodes.append(Node(op, inputs, attrs))
    word, result, rest = (last + " ").split(" ", 2)
    assert word == "return", last
    matrices = [part for part in re.split(r",? ", rest.partition('"')[0]) if part]
    returned = [int(part.strip("~%")) for part in matrices]
    bare = {place for place, part in enumerate(matrices) if part[0] == "~"}
    extras, of_edges = {}, {}
    rest = rest[rest.index('"') :] if '"' in rest else ""
    while match := EXTRA.match(rest):
        name = unquoted(match[1])
        if match[2]:
            place = int(match[2])
            name = f"{name} of {place}"
            of_edges[name] = place + (result == "subgraph")
        extras[name] = int(match[3])
        rest = rest[match.end() :]
    assert not rest.strip(), last
    return Program(nodes, result, returned, extras, of_edges, bare)


# Values


@dataclass
class Vertices:
    """A list; ``every``: that of all vertices, in order."""

    of: list[int]
    every: bool = False


@dataclass
class Vector:
    along: Vertices
    values: list[float]
    # For random numbers their site, and the number of batches over which they change.
    drawn: tuple[int, int] | None = None

    @cached_property
    def at(self) -> dict[int, float]:
        return dict(zip(self.along.of, self.values, strict=True))

    def taken(self, vertices: Vertices) -> list[float]:
        """Its elements along a list: its own, or of vertices that are among those of its list."""
        if self.along.every:
            return [self.values[v] for v in vertices.of]
        if self.along.of == vertices.of:
            return self.values
        return [self.at[v] for v in vertices.of]


@dataclass
class Edges:
    """Edges of a matrix by their places in the CSC, column by column."""

    columns: Vertices
    places: list[list[int]]
    graph: GraphLists
    whole: bool = False
    # A's own, or some that the graph alone tells: excluded ones are among them.
    own: bool = False

    @cached_property
    def flat(self) -> list[int]:
        return [e for column in self.places for e in column]

    @cached_property
    def row_of(self) -> list[int]:
        return [self.graph.indices[e] for e in self.flat]

    @cached_property
    def column_of(self) -> list[int]:
        return [v for v, es in zip(self.columns.of, self.places, strict=True) for _ in es]

    @cached_property
    def rows(self) -> Vertices:
        if self.whole:
            return self.columns
        return distinct(self.row_of)

    @cached_property
    def ids(self) -> list[int]:
        ids = self.graph.edge_ids
        return self.flat if ids is None else [ids[e] for e in self.flat]

    def by_column(self, values: Sequence[float]) -> list[list[float]]:
        found, start = [], 0
        for column in self.places:
            found.append(list(values[start : start + len(column)]))
            start += len(column)
        return found

    def by_row(self, values: Sequence[float]) -> list[list[float]]:
        found: dict[int, list[float]] = {u: [] for u in self.rows.of}
        for u, value in zip(self.row_of, values, strict=True):
            found[u].append(value)
        return list(found.values())


@dataclass
class Matrix:
    edges: Edges
    made: list[float] | BatchError  # an error of values that may not be needed
    times: dict[int, int] = field(default_factory=dict)

    @property
    def values(self) -> list[float]:
        if isinstance(self.made, BatchError):
            raise self.made
        return self.made

    def some(self, chosen: list[list[int]], times: dict[int, int] | None = None) -> Matrix:
        """Returns a matrix of the edges at the places ``chosen`` of each column."""
        edges = self.edges
        places = [[of[i] for i in at] for of, at in zip(edges.places, chosen, strict=True)]
        made = self.made
        if not isinstance(made, BatchError):
            columns = zip(edges.by_column(made), chosen, strict=True)
            made = [own[i] for own, at in columns for i in at]
        return Matrix(Edges(edges.columns, places, edges.graph), made, times or {})

    def columns_of(self, vertices: Vertices) -> Matrix:
        """The columns of a list's vertices; one that it does not have is without edges."""
        edges, made = self.edges, self.made
        columns = vertices if vertices.every else distinct(vertices.of)
        at = {v: i for i, v in enumerate(edges.columns.of)}
        places = [edges.places[at[v]] if v in at else [] for v in columns.of]
        if not isinstance(made, BatchError):
            values = edges.by_column(made)
            made = [x for v in columns.of if v in at for x in values[at[v]]]
        return Matrix(Edges(columns, places, edges.graph), made)


def distinct(of: list[int]) -> Vertices:
    """By first occurrence."""
    return Vertices(list(dict.fromkeys(of)))


def merged(c: Matrix, d: Matrix) -> Matrix:
    """In each column the edges of the first, then those of the second."""
    places = [a + b for a, b in zip(c.edges.places, d.edges.places, strict=True)]
    edges = Edges(c.edges.columns, places, c.edges.graph)
    for m in (c, d):
        if isinstance(m.made, BatchError):
            return Matrix(edges, m.made)
    columns = zip(c.edges.by_column(c.values), d.edges.by_column(d.values), strict=True)
    return Matrix(edges, [x for a, b in columns for x in a + b])


@dataclass
class Rows:
    """Dense rows of a list's vertices."""

    along: Vertices
    rows: list[list[float]]
    width: int

    @cached_property
    def at(self) -> dict[int, list[float]]:
        return dict(zip(self.along.of, self.rows, strict=True))


Value = Vertices | Matrix | Vector | Rows | float


# The call


@dataclass
class Machine:
    """A batch in the making: the values of its nodes."""

    graph: GraphLists
    seeds: list[int]
    numbers: Numbers
    weight: str | None
    inputs: dict[str, list[Any]] = field(default_factory=dict)
    exclude: frozenset[int] = frozenset()
    leaves_out: bool = False
    # True for each node that is a function of the graph alone.
    fixed: list[bool] = field(default_factory=list)
    values: dict[int, Any] = field(default_factory=dict)

    def every(self) -> Vertices:
        return Vertices(list(range(self.graph.num_nodes)), every=True)

    def in_edges(self, v: int) -> list[int]:
        starts = self.graph.indptr
        return list(range(starts[v], starts[v + 1])) if v + 1 < len(starts) else []

    def matrix(self, edges: Edges) -> Matrix:
        if self.weight is None:
            return Matrix(edges, [1.0] * len(edges.flat))
        return self.data(edges, self.weight)

    def data(self, edges: Edges, name: str) -> Matrix:
        array = self.graph.edge_data[name]
        return Matrix(edges, [float(array[i]) for i in edges.ids])

    def without(self, m: Any) -> Any:
        """A matrix of the graph alone as it is chosen from: without excluded edges."""
        if not isinstance(m, Matrix) or not m.edges.own or not self.leaves_out:
            return m
        ids = iter(m.edges.ids)
        kept = [[next(ids) not in self.exclude for _ in es] for es in m.edges.places]
        return m.some([[i for i, stays in enumerate(column) if stays] for column in kept])

    def value(self, i: int) -> Any:
        """Returns the value of a node, or raises the error that it ended with."""
        if isinstance(self.values[i], BatchError):
            raise self.values[i]
        return self.values[i]

    def tried(self, node: Node) -> Any:
        """Returns the value of a node, or its error, which matters where the value is needed.

        The error of a map takes the place of the values alone: the edges are there.
        """
        try:
            return self.make(node)
        except BatchError as error:
            given = [self.values[i] for i in node.inputs]
            edges = [x.edges for x in given if isinstance(x, Matrix)]
            return Matrix(edges[0], error) if edges and node.op in (*MAPS, "spread") else error

    def make(self, node: Node) -> Any:
        given: list[Any] = [self.value(i) for i in node.inputs]
        attrs, op = node.attrs, node.op
        if op in CHOOSE:
            alone = op in ("filter", "top_k", "merge") and all(x.edges.own for x in given)
            if alone and all(self.fixed[i] for i in node.inputs):
                made = self.made(op, attrs, given)
                made.edges.own = True
                return made
            given = [self.without(x) for x in given]
        return self.made(op, attrs, given)

    def made(self, op: str, attrs: dict[str, str], given: list[Any]) -> Any:
        if op in REDUCTIONS:
            return self.reduce(op, given[0], attrs.get("axis"))
        if op in MAPS:
            return self.map(MAPS[op], given, attrs.get("axis"))
        if "site" in attrs:
            k, replace = int(attrs.get("k", 0)), attrs.get("replace") == "true"
            if op == "random":
                return self.random(given, int(attrs["site"]), int(attrs.get("batches", 1)))
            return self.sample(op, given, k, replace, int(attrs["site"]), self.numbers)
        match op:
            case "seeds":
                return Vertices(self.seeds)
            case "column":
                return given[0].edges.columns
            case "row":
                return given[0].edges.rows
            case "union":
                return distinct(given[0].of + given[1].of)
            case "unique":
                return distinct(given[0].of)
            case "concat":
                return Vertices(given[0].of + given[1].of)
            case "pick":
                of = given[0].of
                return Vertices([u for u, x in zip(of, given[1].taken(given[0]), strict=True) if x])
            case "whole":
                return self.slice(self.every(), whole=True)
            case "slice":
                return self.slice(given[0] if given[0].every else distinct(given[0].of))
            case "cross":
                return self.slice(given[1], set(given[0].of))
            case "data":
                return self.data(given[0].edges, name_of(attrs))
            case "filter":
                c, mask = given
                columns = c.edges.by_column(mask.values)
                return c.some([[i for i, x in enumerate(xs) if x] for xs in columns])
            case "top_k":
                c, by = given
                columns = c.edges.by_column(by.values)
                return c.some([largest_places(xs, int(attrs["k"])) for xs in columns])
            case "merge":
                return merged(*given)
            case "extract":
                return given[0].columns_of(given[1])
            case "spread":
                # Whose values do not count, and so no error of theirs.
                bare = Matrix(given[0].edges, [0.0] * len(given[0].edges.ids), given[0].times)
                return self.map(lambda _, y: y, [bare, given[1]], attrs["axis"])
            case "independent":
                return self.independent(*given)
            case "cap":
                return Vector(given[0].along, capped(given[0].values, int(attrs["k"])))
            case "labor":
                a, q = (m.edges.by_column(m.values) for m in given)
                return Vector(given[0].edges.columns, labor_factors(a, q, int(attrs["k"])))
            case "level":
                c, sums = given
                values = checked("cap", c.values)
                columns = zip(c.edges.by_column(values), sums.taken(c.edges.columns), strict=True)
                return Vector(c.edges.columns, [level_factor(v, x) for v, x in columns])
            case "vertices":
                return Vector(
                    self.every(), [float(x) for x in self.graph.node_data[name_of(attrs)]]
                )
            case "degree":
                every = self.every()
                return Vector(every, [float(len(self.in_edges(v))) for v in every.of])
            case "number":
                every = self.every()
                return Vector(every, [float(v) for v in every.of])
            case "const":
                return float(attrs["value"])
            case "times":
                b = given[0]
                return Vector(b.edges.rows, [float(b.times[u]) for u in b.edges.rows.of])
            case "features":
                rows = self.graph.node_data[name_of(attrs)]
                width = len(rows[0]) if rows else 0
                return Rows(self.every(), [[single(x) for x in row] for row in rows], width)
            case "take":
                rows = [given[0].at[v] for v in given[1].of]
                return Rows(given[1], rows, given[0].width)
            case "project":
                w = self.inputs[name_of(attrs)]
                w = w if isinstance(w[0], list) else [[x] for x in w]
                rows = [projected(row, w) for row in given[0].rows]
                return Rows(given[0].along, rows, len(w[0]))
            case "multiply":
                return self.multiplied(given[0], given[1], attrs["axis"] == "1")
            case "entry":
                k = int(attrs["k"])
                return Vector(given[0].along, [row[k] for row in given[0].rows])
            case "dot":
                edges, p, q = given[0].edges, given[1].at, given[2].at
                ends = zip(edges.row_of, edges.column_of, strict=True)
                return Matrix(edges, [dot(p[u], q[v]) for u, v in ends])
            case "item":
                return float(self.inputs[name_of(attrs)][int(attrs["k"])])
            case "isin":
                members = set(given[1].of)
                return Vector(given[0], [float(v in members) for v in given[0].of])
            case "gather":
                return Vector(given[1], given[0].taken(given[1]))
        raise AssertionError(op)

    def slice(self, s: Vertices, rows: set[int] | None = None, whole: bool = False) -> Matrix:
        source, ids = self.graph.indices, self.graph.edge_ids
        places = [[e for e in self.in_edges(v) if rows is None or source[e] in rows] for v in s.of]
        if not whole:
            out = self.exclude
            places = [[e for e in es if (e if ids is None else ids[e]) not in out] for es in places]
        return self.matrix(Edges(s, places, self.graph, whole, whole))

    def map(self, function: Callable[..., float], given: list[Value], axis: str | None) -> Value:
        matrix = next((x for x in given if isinstance(x, Matrix)), None)
        vectors = [x for x in given if isinstance(x, Vector)]
        if matrix is None and not vectors:
            return function(*given)
        if matrix is not None:
            edges = matrix.edges
            owners = edges.column_of if axis == "0" else edges.row_of
            count = len(edges.flat)
        else:
            along = next((v.along for v in vectors if not v.along.every), vectors[0].along)
            count = len(along.of)
        columns = []
        for x in given:
            if isinstance(x, Matrix):
                columns.append(x.values)
            elif isinstance(x, Vector):
                columns.append([x.at[v] for v in owners] if matrix else x.taken(along))
            else:
                assert isinstance(x, float)
                columns.append([x] * count)
        values = [function(*xs) for xs in zip(*columns, strict=True)]
        return Vector(along, values) if matrix is None else Matrix(matrix.edges, values)

    def reduce(self, op: str, x: Value, axis: str | None) -> Value:
        if isinstance(x, Vector):
            return reduced(op, [x.values], True)[0]
        assert isinstance(x, Matrix)
        edges, values = x.edges, [0.0] * len(x.edges.flat) if op == "count" else x.values
        if axis == "0":
            return Vector(edges.columns, reduced(op, edges.by_column(values), False))
        return Vector(edges.rows, reduced(op, edges.by_row(values), True))

    def multiplied(self, c: Matrix, x: Rows, by_row: bool) -> Rows:
        """For each row, or column, of c the sum of its edges' values times rows of x."""
        edges, at = c.edges, x.at
        group, along = (edges.by_row, edges.rows) if by_row else (edges.by_column, edges.columns)
        owners = edges.column_of if by_row else edges.row_of
        sums = []
        for k in range(x.width):
            products = [value * at[v][k] for value, v in zip(c.values, owners, strict=True)]
            sums.append([single(s) for s in reduced("sum", group(products), by_row)])
        return Rows(along, [[s[i] for s in sums] for i in range(len(along.of))], x.width)

    def walk(self, roots: list[int], length: int, site: int) -> Vertices:
        at, visited = list(roots), list(roots)
        for step in range(length):
            for i, v in enumerate(at):
                if row := self.in_edges(v):
                    x = bits_of_draw(self.numbers.state(site, i, WALK), step)
                    at[i] = self.graph.indices[row[x * len(row) >> 64]]
            visited += at
        return Vertices(visited)

    def random(self, given: list[Any], site: int, batches: int) -> Value:
        if not given:
            every = self.every()
            of = [self.numbers.random(site, v, CANDIDATE, batches) for v in every.of]
            return Vector(every, of, (site, batches))
        edges = given[0].edges
        return Matrix(edges, [self.numbers.random(site, i, EDGE, batches) for i in edges.ids])

    def independent(self, c: Matrix, r: Vector) -> Matrix:
        """The numbers of sources; parallel edges but the first of a row have their own."""
        edges, graph = c.edges, self.graph
        assert r.drawn is not None
        site, batches = r.drawn
        values = []
        for v, e, i in zip(edges.column_of, edges.flat, edges.ids, strict=True):
            u = graph.indices[e]
            before = [p for p in self.in_edges(v) if p < e and graph.indices[p] == u]
            ids = before if graph.edge_ids is None else [graph.edge_ids[p] for p in before]
            if any(other not in self.exclude for other in ids):
                values.append(self.numbers.random(site, u, CANDIDATE, batches, 1 + i))
            else:
                values.append(r.at[u])
        return Matrix(edges, values)

    def sample(
        self, op: str, given: list[Any], k: int, replace: bool, site: int, numbers: Numbers
    ) -> Value:
        if op == "draw":
            v = given[0]
            p = checked(op, v.values)
            places = choose_vertices(numbers, site, v.along.of, p, k, replace)
            return Vertices([v.along.of[i] for i in places])
        if op == "roots":
            n = self.graph.num_nodes
            states = [numbers.state(site, i, INDEX) for i in range(k if n else 0)]
            return Vertices([bits_of_draw(s, 0) * n >> 64 for s in states])
        if op == "walk":
            return self.walk(given[0].of, k, site)
        c: Matrix = given[0]
        edges = c.edges
        if op == "individual":
            states = [numbers.state(site, v, ROW) for v in edges.columns.of]
            if len(given) == 1:
                columns = zip(edges.places, states, strict=True)
                return c.some([choose(len(es), k, replace, state) for es, state in columns])
            p = checked(op, given[1].values)
            rule = draws_of_column if replace else race_of_column
            pairs = zip(edges.by_column(p), states, strict=True)
            return c.some([rule(column, k, state) for column, state in pairs])
        if op == "dependent":
            states = [numbers.state(site, v, ROW) for v in edges.columns.of]
            pairs = zip(edges.by_column(given[1].values), states, strict=True)
            return c.some([dependent_of_column(p, state) for p, state in pairs])
        assert op == "collective", op
        rows = edges.rows.of
        if len(given) == 1:
            p = [float(len(group)) for group in edges.by_row([0.0] * len(edges.flat))]
        else:
            p = checked(op, [given[1].at[u] for u in rows])
        times = Counter(rows[i] for i in choose_vertices(numbers, site, rows, p, k, replace))
        source = self.graph.indices
        kept = [[i for i, e in enumerate(es) if source[e] in times] for es in edges.places]
        return c.some(kept, dict(times))


@dataclass
class Block:
    indptr: list[int]
    indices: list[int]
    edge_ids: list[int]
    values: list[float]
    num_src: int
    num_dst: int


@dataclass
class Result:
    """The content of a batch; a subgraph is one block from all ``nodes`` to all of them."""

    nodes: list[int]
    output_nodes: list[int]
    output_index: list[int]
    blocks: list[Block]
    extras: dict[str, list[Any]]


def as_block(m: Matrix, place: dict[int, int], num_dst: int, bare: bool = False) -> Block:
    edges = m.edges
    local: dict[int, list[tuple[int, int, float]]] = {}
    values = [1.0] * len(edges.flat) if bare else m.values
    columns = zip(edges.column_of, edges.row_of, edges.ids, values, strict=True)
    for v, u, edge_id, value in columns:
        local.setdefault(place[v], []).append((place[u], edge_id, single(value)))
    block = Block([0], [], [], [], len(place), num_dst)
    for i in range(num_dst):
        for u, edge_id, value in local.get(i, []):
            block.indices.append(u)
            block.edge_ids.append(edge_id)
            block.values.append(value)
        block.indptr.append(len(block.indices))
    return block


def reference(
    code: str,
    graph: GraphLists,
    seeds: Sequence[int],
    *,
    seed: int = 0,
    epoch: int = 0,
    batch: int = 0,
    weight: str | None = None,
    inputs: dict[str, list[Any]] | None = None,
    exclude: Sequence[int] = (),
    everything: bool = False,
) -> Result:
    """The batch that a program makes; ``BatchError`` where it has none.

    ``everything`` makes also the values that no result needs, which may have errors of their own.
    """
    program = parse(code)
    numbers = Numbers(seed, epoch, batch)
    left_out = frozenset(exclude)
    machine = Machine(graph, list(seeds), numbers, weight, inputs or {}, left_out, bool(left_out))
    for node in program.nodes:
        draws = node.op in ("seeds", "project", "item") or "site" in node.attrs
        machine.fixed.append(not draws and all(machine.fixed[i] for i in node.inputs))
    for i, node in enumerate(program.nodes):
        if everything:
            machine.values[i] = machine.make(node)
        elif i in program.needed:
            machine.values[i] = machine.tried(node)
    values = {
        i: machine.without(machine.value(i)) for i in {*program.returned, *program.extras.values()}
    }
    extras: dict[str, list[Any]] = {}
    for name, i in program.extras.items():
        value = values[i]
        if name in program.of_edges:
            extras[name] = []
        elif isinstance(value, Vertices):
            extras[name] = list(value.of)
        else:
            rows = value.rows if isinstance(value, Rows) else [value.values]
            extras[name] = [single(x) for row in rows for x in row]
    blocks: list[Block] = []
    place = {v: i for i, v in enumerate(dict.fromkeys(seeds))}
    if program.result == "subgraph":
        chosen, m = (values[i] for i in program.returned)
        place = {v: i for i, v in enumerate(chosen.of)}
        blocks = [as_block(m, place, len(place), 1 in program.bare)]
    elif program.result == "blocks":
        for at, i in reversed(list(enumerate(program.returned))):
            edges = values[i].edges
            for v in edges.columns.of:
                place.setdefault(v, len(place))
            num_dst = len(place)
            for u in edges.row_of:
                place.setdefault(u, len(place))
            blocks.insert(0, as_block(values[i], place, num_dst, at in program.bare))
    for name, at in program.of_edges.items():
        of = blocks[at - (program.result == "subgraph")]
        extras[name] = as_block(values[program.extras[name]], place, of.num_dst).values
    index = [place.get(v, -1) for v in seeds]
    return Result(list(place), list(seeds), index, blocks, extras)
