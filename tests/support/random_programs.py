"""Random programs that are well typed, as texts: a grammar of all operators."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from program_graphs import CHANCES, EDGE_ARRAYS, INPUTS, NODE_ARRAYS, ROW_ARRAYS
from program_reference import parse

Along = tuple[str, int]
EVERY: Along = ("all", 0)
LIST, MATRIX, VECTOR, SCALAR, DENSE = "list", "matrix", "vector", "scalar", "dense"
BINARY = ["add", "sub", "mul", "div", "min", "max", "lt", "le", "eq", "ne"]
UNARY = ["neg", "abs", "sqrt", "exp", "log", "relu", "not"]
TRUTHS = {"not", "lt", "le", "eq", "ne"}
KEEPS = {"add", "mul", "min", "max", "where", "relu", "abs", "sqrt"}  # of chances they make chances
EXPONENTS = [2, 2, 3, -1, 0, 0.5, 1, -2, 64, 65, 1.5, -0.5]
CONSTANTS = [0, 1, 2, -1, 0.5, 1e-3, -2.5, 1e300, 3]
COUNTS = [0, 1, 1, 2, 2, 2, 3, 3, 4, 7, 7, 33, 64, 1000, -1]


@dataclass
class Node:
    """The properties of a value that the engine's checks know."""

    op: str
    inputs: list[int]
    kind: str
    edges: int = -1
    along: Along = EVERY
    distinct: bool = False
    chance: bool = False  # finite and >= 0, as far as one can say
    size: int = 1  # of lists and matrices that grow by being joined
    width: int = 0  # of dense rows


class Writer:
    """A program in the making: every operator where there is something that it takes."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.nodes: list[Node] = []
        self.lines: list[str] = []
        self.sites = 0
        self.vertices("seeds", [])

    def add(self, node: Node, attrs: str = "") -> int:
        i = len(self.nodes)
        inputs = ", ".join(f"%{k}" for k in node.inputs)
        words = [node.op, inputs, attrs]
        self.lines.append(f"%{i} = " + " ".join(word for word in words if word))
        self.nodes.append(node)
        return i

    def vertices(self, op: str, inputs: list[int], attrs: str = "", **known: Any) -> int:
        known.setdefault("along", ("of", len(self.nodes)))
        return self.add(Node(op, inputs, LIST, **known), attrs)

    def chosen(self, op: str, inputs: list[int], attrs: str = "", **known: Any) -> int:
        """A matrix of edges of its own, with the values of the first input."""
        return self.add(Node(op, inputs, MATRIX, len(self.nodes), **known), attrs)

    def site(self, replace: bool | None = None) -> str:
        self.sites += 1
        k = f"k={self.rng.choice(COUNTS)} replace={str(replace).lower()} "
        return (k if replace is not None else "") + f"site={self.sites - 1}"

    # Inputs that fit together

    def pick(self, fits: Callable[[Node], bool]) -> int | None:
        """A node, later ones more often."""
        found = [i for i, n in enumerate(self.nodes) if fits(n)]
        return found[int(len(found) * self.rng.random() ** 0.5)] if found else None

    def of(self, kind: str) -> int | None:
        return self.pick(lambda n: n.kind == kind)

    def value(self, fits: Callable[[Node], bool], chance: bool) -> int | None:
        """A value; one that can be a chance, nearly always, where that is asked for."""
        if chance and self.rng.random() < 0.9:
            return self.pick(lambda n: n.chance and fits(n))
        return self.pick(fits)

    def parents(self, edges: int) -> list[int]:
        """Matrices of whose edges this one has some."""
        node = self.nodes[edges]
        if node.op not in ("individual", "collective", "dependent", "filter", "top_k", "extract"):
            return [edges]
        return [edges, *self.parents(self.nodes[node.inputs[0]].edges)]

    def columns(self, edges: int) -> Along:
        node = self.nodes[edges]
        if node.op == "whole":
            return EVERY
        if node.op == "cross":
            return self.nodes[node.inputs[1]].along
        if node.op in ("slice", "extract"):
            of = self.nodes[node.inputs[-1]]
            return of.along if of.distinct else ("columns", edges)
        return self.columns(self.nodes[node.inputs[0]].edges)

    def rows(self, edges: int) -> Along:
        return EVERY if self.nodes[edges].op == "whole" else ("rows", edges)

    def fits(self, along: Along, edges: int, axis: int) -> bool:
        if along == EVERY:
            return True
        if axis == 0:
            return along == self.columns(edges)
        for parent in self.parents(edges):
            node = self.nodes[parent]
            if along == self.rows(parent):
                return True
            if node.op == "cross" and along == self.nodes[node.inputs[0]].along:
                return True
        return False

    def within(self, edges: int, along: Along) -> bool:
        """Are the rows vertices of the list along which these vectors run?"""
        node = self.nodes[edges]
        if node.op in ("whole", "slice"):
            return along == EVERY
        if node.op == "cross":
            return self.nodes[node.inputs[0]].along == along
        if node.op == "filter":
            mask, line = self.nodes[node.inputs[1]], self.lines[node.inputs[1]]
            members = self.nodes[mask.inputs[1]] if " = spread " in line else mask
            of = members.inputs[1] if members.op == "isin" and " axis=1" in line else -1
            if of >= 0 and self.nodes[of].along == along:
                return True
        inputs = node.inputs if node.op == "merge" else node.inputs[:1]
        return all(self.within(self.nodes[i].edges, along) for i in inputs)

    def repeats(self, along: Along) -> bool:
        return along[0] == "of" and not self.nodes[along[1]].distinct

    # Operators

    def more_lists(self) -> int | None:
        a, b = self.of(LIST), self.of(LIST)
        assert a is not None and b is not None
        op = self.rng.choice(
            ["union", "unique", "concat", "pick", "draw", "row", "column", "roots", "walk"]
        )
        if op == "union":
            return self.vertices(op, [a, b], distinct=True)
        if op == "unique":
            return self.vertices(op, [a], distinct=True)
        if op == "concat":
            size = self.nodes[a].size + self.nodes[b].size
            return self.vertices(op, [a, b], size=size) if size <= 6 else None
        if op in ("row", "column"):
            c = self.of(MATRIX)
            if c is None:
                return None
            edges = self.nodes[c].edges
            along = self.rows(edges) if op == "row" else self.columns(edges)
            return self.vertices(op, [c], along=along, distinct=True)
        if op == "pick":
            return self.those()
        if op == "roots":
            k = self.rng.choice([0, 1, 3, 8, 70])
            return self.vertices(op, [], f"k={k} {self.site()}")
        if op == "walk":
            k, size = self.rng.choice([0, 1, 2, 5]), self.nodes[a].size
            if size * (k + 1) > 6:
                return None
            return self.vertices(op, [a], f"k={k} {self.site()}", size=size * (k + 1))
        v = self.value(lambda n: n.kind == VECTOR, chance=True)
        if v is None:
            return None
        replace = self.rng.random() < 0.4
        distinct = not replace and not self.repeats(self.nodes[v].along)
        return self.vertices(op, [v], self.site(replace), distinct=distinct)

    def those(self) -> int | None:
        lists = {n.along for n in self.nodes if n.kind == LIST}
        v = self.pick(lambda n: n.kind == VECTOR and n.along in lists)
        if v is None:
            return None
        along = self.nodes[v].along
        a = self.pick(lambda n: n.kind == LIST and n.along == along)
        assert a is not None
        of = self.nodes[a]
        return self.vertices("pick", [a, v], distinct=of.distinct, size=of.size)

    def matrix_of_graph(self) -> int | None:
        op = self.rng.choice(["whole", "slice", "slice", "slice", "cross"])
        if op == "whole":
            return self.chosen(op, [], chance=True)
        if op == "slice":
            s = self.of(LIST)
            assert s is not None
            return self.chosen(op, [s], chance=True)
        r, s = (self.pick(lambda n: n.kind == LIST and n.distinct) for _ in range(2))
        if r is None or s is None:
            return None
        return self.chosen(op, [self.rng.choice([r, s]), s], chance=True)

    def some_edges(self) -> int | None:
        c = self.of(MATRIX)
        if c is None:
            return None
        own = self.nodes[c]
        same: dict[str, Any] = {"chance": own.chance, "size": own.size}
        op = self.rng.choice(
            [
                "individual",
                "individual",
                "collective",
                "filter",
                "top_k",
                "merge",
                "dependent",
                "extract",
                "from",
            ]
        )
        if op in ("extract", "from"):
            s = self.of(LIST)
            assert s is not None
            return self.chosen(op, [c, s], **same) if op == "extract" else self.edges_from(c, s)
        if op == "merge":
            columns = self.columns(own.edges)
            d = self.pick(lambda n: n.kind == MATRIX and self.columns(n.edges) == columns)
            assert d is not None
            other = self.nodes[d]
            size = own.size + other.size
            if size > 4:
                return None
            return self.chosen(op, [c, d], size=size, chance=own.chance and other.chance)
        inputs, along = [c], own.edges
        if op == "dependent":
            p = self.chances(along)
            return None if p is None else self.chosen(op, [c, p], self.site(), **same)
        if op == "collective":
            p = self.value(lambda n: n.kind == VECTOR and self.fits(n.along, along, 1), chance=True)
        else:
            drawn = op == "individual"
            p = self.value(lambda n: n.kind == MATRIX and n.edges == along, chance=drawn)
        if op in ("filter", "top_k") or self.rng.random() < 0.7:
            if p is None:
                return None
            inputs.append(p)
        if op == "filter":
            return self.chosen(op, inputs, **same)
        if op == "top_k":
            return self.chosen(op, inputs, f"k={self.rng.choice(COUNTS)}", **same)
        return self.chosen(op, inputs, self.site(self.rng.random() < 0.4), **same)

    def edges_from(self, c: int, vertices: int) -> int:
        """C[R, :]."""
        own = self.nodes[c]
        along = self.rows(own.edges)
        rows = self.vertices("row", [c], along=along, distinct=True)
        members = self.add(Node("isin", [rows, vertices], VECTOR, along=along, chance=True))
        spread = self.add(Node("spread", [c, members], MATRIX, own.edges, chance=True), "axis=1")
        return self.chosen("filter", [c, spread], chance=own.chance, size=own.size)

    def chances(self, edges: int) -> int | None:
        """Values of edges that are chances of each of them: mostly those that have a sum."""
        if self.rng.random() < 0.3:
            most = {*TRUTHS, "random"} if self.rng.random() < 0.8 else None
            return self.pick(
                lambda n: n.kind == MATRIX and n.edges == edges and (most is None or n.op in most)
            )
        a = self.value(lambda n: n.kind == MATRIX and n.edges == edges, chance=True)
        c = None if a is None else self.level(a)
        if a is None or c is None:
            return None
        scaled = self.add(Node("mul", [a, c], MATRIX, edges, chance=True), "axis=0")
        one = self.add(Node("const", [], SCALAR, chance=True), "value=1")
        return self.add(Node("min", [scaled, one], MATRIX, edges, chance=True))

    def level(self, a: int) -> int | None:
        """A factor for each column: by a number, or by what another vector says."""
        edges = self.nodes[a].edges
        along = self.columns(edges)
        if self.rng.random() < 0.3:
            sums = self.pick(lambda n: n.kind == VECTOR and self.fits(n.along, edges, 0))
        else:
            count = self.add(Node("count", [a], VECTOR, along=along, chance=True), "axis=0")
            share = self.rng.choice([0, 1, 0.5, 0.3, 2])
            other = self.add(Node("const", [], SCALAR, chance=True), f"value={share}")
            op = self.rng.choice(["mul", "min"])
            sums = self.add(Node(op, [count, other], VECTOR, along=along, chance=True))
        return None if sums is None else self.add(Node("level", [a, sums], VECTOR, along=along))

    def leaf(self) -> int | None:
        op = self.rng.choice(["data", "vertices", "degree", "number", "const", "random", "random"])
        if op == "const":
            x = self.rng.choice(CONSTANTS)
            return self.add(Node(op, [], SCALAR, chance=x >= 0), f"value={x}")
        if op in ("degree", "number"):
            return self.add(Node(op, [], VECTOR, chance=True))
        if op == "vertices":
            name = self.rng.choice(list(NODE_ARRAYS))
            return self.add(
                Node(op, [], VECTOR, chance=name in CHANCES), f"name={json.dumps(name)}"
            )
        c = self.of(MATRIX)
        if op == "random" and (c is None or self.rng.random() < 0.4):
            race = re.compile(r"= collective .*replace=false (site=\d+)$", re.MULTILINE)
            races = race.findall("\n".join(self.lines))
            raced = bool(races) and self.rng.random() < 0.5
            site = self.rng.choice(races) if raced else self.numbers()
            return self.add(Node(op, [], VECTOR, chance=True), site)
        if c is None:
            return None
        known: dict[str, Any] = {"edges": self.nodes[c].edges, "chance": True}
        if op == "random":
            return self.add(Node(op, [c], MATRIX, **known), self.numbers())
        name = self.rng.choice(list(EDGE_ARRAYS))
        known["chance"] = name in CHANCES
        return self.add(Node(op, [c], MATRIX, **known), f"name={json.dumps(name)}")

    def numbers(self) -> str:
        """A site of random numbers, at times of several batches."""
        return self.site() + (" batches=2" if self.rng.random() < 0.2 else "")

    def map(self) -> int | None:
        op = self.rng.choice([*BINARY, *BINARY, *UNARY, "pow", "where", "spread"])
        a = self.pick(lambda n: n.kind not in (LIST, DENSE))
        if a is None:
            return None
        x = self.nodes[a]
        if op in UNARY:
            chance = op in TRUTHS or (op in KEEPS and x.chance)
            return self.add(Node(op, [a], x.kind, x.edges, x.along, chance=chance))
        if op == "spread":
            return self.spread()
        if op == "pow":
            y = self.rng.choice(EXPONENTS)
            b = self.add(Node("const", [], SCALAR), f"value={y}")
            chance = x.chance and y in (0, 0.5, 1, 2)
            return self.add(Node(op, [a, b], x.kind, x.edges, x.along, chance=chance))
        axis = self.rng.randrange(2) if op != "where" else -1
        inputs = [a]
        for _ in range(2 if op == "where" else 1):
            known = [self.nodes[i] for i in inputs]
            other = self.pick(partial(self.together, known, axis))
            if other is None:
                return None
            inputs.append(other)
        self.rng.shuffle(inputs)
        known = [self.nodes[i] for i in inputs]
        kind, edges, along = self.joined(known)
        chance = op in TRUTHS or (op in KEEPS and all(n.chance for n in known))
        attrs = f"axis={axis}" if kind == MATRIX and axis >= 0 else ""
        return self.add(Node(op, inputs, kind, edges, along, chance=chance), attrs)

    def spread(self) -> int | None:
        c, axis = self.of(MATRIX), self.rng.randrange(2)
        if c is None:
            return None
        edges = self.nodes[c].edges
        v = self.pick(lambda n: n.kind == VECTOR and self.fits(n.along, edges, axis))
        if v is None:
            return None
        of = self.nodes[v]
        numbers = of.op == "random" and axis == 1 and self.rng.random() < 0.7
        op = "independent" if numbers else "spread"
        return self.add(Node(op, [c, v], MATRIX, edges, chance=of.chance), f"axis={axis}")

    def joined(self, nodes: list[Node]) -> tuple[str, int, Along]:
        matrix = next((n for n in nodes if n.kind == MATRIX), None)
        if matrix:
            return MATRIX, matrix.edges, EVERY
        vectors = [n.along for n in nodes if n.kind == VECTOR]
        if not vectors:
            return SCALAR, -1, EVERY
        return VECTOR, -1, next((a for a in vectors if a != EVERY), EVERY)

    def together(self, others: list[Node], axis: int, node: Node) -> bool:
        nodes = [*others, node]
        if any(n.kind in (LIST, DENSE) for n in nodes):
            return False
        kind, edges, along = self.joined(nodes)
        if axis < 0 and kind == MATRIX and any(n.kind == VECTOR for n in nodes):
            return False
        for n in nodes:
            if n.kind == MATRIX and n.edges != edges:
                return False
            if n.kind == VECTOR and n.along not in (EVERY, along) and kind == VECTOR:
                return False
            if n.kind == VECTOR and kind == MATRIX and not self.fits(n.along, edges, axis):
                return False
        return True

    def reduction(self) -> int | None:
        op = self.rng.choice(["sum", "sum", "mean", "largest", "smallest", "count"])
        axis = self.rng.randrange(2)
        binned = op in ("sum", "mean")
        a = self.value(lambda n: n.kind in (MATRIX, VECTOR), chance=binned)
        if a is None:
            return None
        x = self.nodes[a]
        chance = op == "count" or x.chance
        if x.kind == VECTOR:
            return self.add(Node(op, [a], SCALAR, chance=chance))
        along = self.rows(x.edges) if axis else self.columns(x.edges)
        return self.add(Node(op, [a], VECTOR, along=along, chance=chance), f"axis={axis}")

    def vector(self) -> int | None:
        op = self.rng.choice(["times", "gather", "gather", "cap", "labor", "level", "isin"])
        if op == "isin":
            a, b = self.of(LIST), self.of(LIST)
            assert a is not None
            assert b is not None
            return self.add(Node(op, [a, b], VECTOR, along=self.nodes[a].along, chance=True))
        if op == "times":
            b = self.pick(lambda n: n.op == "collective")
            if b is None:
                return None
            along = self.rows(self.nodes[b].edges)
            return self.add(Node(op, [b], VECTOR, along=along, chance=True))
        if op == "cap":
            v = self.value(lambda n: n.kind == VECTOR, chance=True)
            if v is None:
                return None
            k = self.rng.choice([k for k in COUNTS if k >= 0])
            return self.add(Node(op, [v], VECTOR, along=self.nodes[v].along, chance=True), f"k={k}")
        if op == "level":
            a = self.value(lambda n: n.kind == MATRIX, chance=True)
            return None if a is None else self.level(a)
        if op == "labor":
            a = self.value(lambda n: n.kind == MATRIX, chance=True)
            if a is None:
                return None
            of = self.nodes[a].edges
            q = self.value(lambda n: n.kind == MATRIX and n.edges == of, chance=True)
            if q is None:
                return None
            along = self.columns(of)
            return self.add(Node(op, [a, q], VECTOR, along=along), f"k={self.rng.choice(COUNTS)}")
        s = self.of(LIST)
        assert s is not None
        along = self.nodes[s].along
        # A list of B's rows also takes vectors along the rows of the matrix that B was chosen from.
        rows = along[1] if along[0] == "rows" else None
        v = self.pick(
            lambda n: (
                n.kind == VECTOR
                and (
                    n.along in (EVERY, along) or (rows is not None and self.fits(n.along, rows, 1))
                )
            )
        )
        if v is None:
            return None
        chance = self.nodes[v].chance
        return self.add(Node(op, [v, s], VECTOR, along=along, chance=chance))

    def dense(self) -> int | None:
        """Dense rows, and what is made of them."""
        op = self.rng.choice(
            ["features", "take", "project", "dot", "item", "multiply", "multiply", "entry"]
        )
        if op == "item":
            text = f"name={json.dumps('v')} k={self.rng.randrange(len(INPUTS['v']))}"
            return self.add(Node(op, [], SCALAR), text)
        x = self.of(DENSE)
        if op == "features" or x is None:
            name = self.rng.choice(list(ROW_ARRAYS))
            width = ROW_ARRAYS[name][1]
            text = f"name={json.dumps(name)}"
            return self.add(Node("features", [], DENSE, width=width, chance=name == "s"), text)
        rows = self.nodes[x]
        if op == "entry":
            text = f"k={self.rng.randrange(rows.width)}"
            return self.add(Node(op, [x], VECTOR, along=rows.along, chance=rows.chance), text)
        if op == "project":
            fitting = [name for name, w in INPUTS.items() if len(w) == rows.width]
            if not fitting:
                return None
            name = self.rng.choice(fitting)
            first = INPUTS[name][0]
            width = len(first) if isinstance(first, list) else 1
            made = Node(op, [x], DENSE, along=rows.along, width=width)
            return self.add(made, f"name={json.dumps(name)}")
        if op == "take":
            s = self.pick(lambda n: n.kind == LIST and rows.along in (EVERY, n.along))
            if s is None:
                return None
            return self.add(replace(rows, op=op, inputs=[x, s], along=self.nodes[s].along))
        if op == "multiply":
            return self.multiply(x)
        c = self.pick(lambda n: n.kind == MATRIX and self.fits(rows.along, n.edges, 1))
        if c is None:
            return None
        edges = self.nodes[c].edges
        q = self.pick(
            lambda n: n.kind == DENSE and n.width == rows.width and self.fits(n.along, edges, 0)
        )
        return None if q is None else self.add(Node(op, [c, x, q], MATRIX, edges))

    def multiply(self, x: int) -> int | None:
        rows, axis = self.nodes[x], self.rng.randrange(2)
        c = self.value(
            lambda n: n.kind == MATRIX and self.fits(rows.along, n.edges, 1 - axis),
            chance=axis == 1,
        )
        if c is None:
            return None
        own = self.nodes[c]
        along = self.rows(own.edges) if axis else self.columns(own.edges)
        made = Node("multiply", [c, x], DENSE, along=along, width=rows.width)
        made.chance = own.chance and rows.chance
        return self.add(made, f"axis={axis}")

    def hop(self) -> int | None:
        """A layer as samplers have it: in-edges, a draw, and the vertices reached."""
        s = self.of(LIST)
        assert s is not None
        c = self.chosen("slice", [s], chance=True)
        for _ in range(self.rng.randrange(3)):
            self.rng.choice([self.leaf, self.map, self.reduction])()
        b = self.some_edges()
        row = self.of(MATRIX) if b is None else b
        assert row is not None
        r = self.vertices("row", [row], along=self.rows(self.nodes[row].edges), distinct=True)
        self.vertices("union", [s, r], distinct=True)
        return c

    def again(self) -> int:
        """A node once more: the same value, but where it draws, by numbers of its own."""
        i, new = self.rng.randrange(len(self.nodes)), len(self.nodes)
        node = self.nodes[i]
        _, _, text = self.lines[i].partition(" = ")
        if " site=" in text:
            text = re.sub(r"site=\d+(?=( batches=\d+)?$)", self.site(), text)
        edges = new if node.edges == i else node.edges
        along = ("of", new) if node.along == ("of", i) else node.along
        self.lines.append(f"%{new} = {text}")
        self.nodes.append(replace(node, edges=edges, along=along))
        return new

    # The result

    def result(self) -> str:
        matrices = [
            i
            for i, n in enumerate(self.nodes)
            if n.kind == MATRIX and self.nodes[n.edges].op != "whole"
        ]
        named = [i for i, n in enumerate(self.nodes) if n.kind in (LIST, VECTOR, DENSE)]
        # Much of it, so that little is made for nothing; nodes that others take are seen in those.
        taken = {i for n in self.nodes for i in n.inputs}
        extras = [i for i in named if self.rng.random() < (0.2 if i in taken else 0.8)]
        last = [i for i in matrices if i not in taken] or matrices[-6:]
        subgraphs = [
            (s, m)
            for m in matrices
            for s, n in enumerate(self.nodes)
            if n.kind == LIST and n.distinct and n.along == self.columns(self.nodes[m].edges)
            if self.within(self.nodes[m].edges, n.along)
        ]
        what = self.rng.random()
        if subgraphs and what < 0.5:
            s, m = self.rng.choice(subgraphs)
            text, values = f"return subgraph %{s}, {self.bare()}%{m}", self.of_edges([m])
        elif matrices and what < 0.9:
            hops = self.rng.sample(last, min(len(last), self.rng.choice([1, 2, 3, 5])))
            text = "return blocks " + ", ".join(f"{self.bare()}%{m}" for m in hops)
            values = self.of_edges(hops)
        else:
            text, values = "return vectors", []
            extras = extras or [self.rng.choice(named)]
        given = [f' "e{i}"=%{i}' for i in extras] + values
        self.rng.shuffle(given)
        return text + "".join(given)

    def bare(self) -> str:
        return "~" if self.rng.random() < 0.15 else ""

    def of_edges(self, matrices: list[int]) -> list[str]:
        """Values of the edges of what is returned, by name."""
        found = []
        for place, m in enumerate(matrices):
            same = [
                i
                for i, n in enumerate(self.nodes)
                if n.kind == MATRIX and n.edges == self.nodes[m].edges
            ]
            count = min(len(same), self.rng.choice([0, 0, 0, 1, 2]))
            found += [f' "v{i}"[{place}]=%{i}' for i in self.rng.sample(same, count)]
        return found


def program(rng: random.Random, most: int = 30) -> str:
    """The text of a program of some operators."""
    writer = Writer(rng)
    makers = [
        writer.hop,
        writer.more_lists,
        writer.matrix_of_graph,
        writer.some_edges,
        writer.leaf,
        writer.map,
        writer.map,
        writer.map,
        writer.map,
        writer.reduction,
        writer.vector,
        writer.dense,
        writer.again,
    ]
    for _ in range(rng.randrange(2, most)):
        rng.choice(makers)()
    return "\n".join([*writer.lines, writer.result()])


def only(code: str, i: int, matrix: bool) -> str:
    """The part of a program that makes node i, which it returns, and nothing else."""
    whole = parse(code)
    needed: set[int] = set()
    left = [i]
    while left:
        k = left.pop()
        needed.add(k)
        left += whole.nodes[k].inputs
    number = {old: new for new, old in enumerate(sorted(needed))}

    def renumbered(line: str) -> str:
        # Names may have signs of percent; numbers stand before them.
        head, quote, rest = line.partition('"')
        return re.sub(r"%(\d+)", lambda m: f"%{number[int(m[1])]}", head) + quote + rest

    lines = [renumbered(line) for k, line in enumerate(code.split("\n")) if k in needed]
    result = f"return blocks %{number[i]}" if matrix else f'return vectors "e"=%{number[i]}'
    return "\n".join([*lines, result])
