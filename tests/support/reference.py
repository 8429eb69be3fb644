"""The sampling contract once more, slowly and in plain Python.

Written from the contract and not from the engine: Philox4x32-10 makes one state for each row,
SplitMix64's finaliser makes the draws, Robert Floyd's algorithm chooses positions, and vertices are
numbered by first occurrence.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pygsampler as pgs

MASK32 = (1 << 32) - 1
MASK64 = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
NEIGHBORS, WALKS, NEGATIVES, RESERVOIRS = 0, 2, 4, 6  # the purposes of the draws


def philox4x32(counter: tuple[int, ...], key: tuple[int, int], rounds: int = 10) -> tuple[int, ...]:
    """Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(rounds):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (
            (p1 >> 32) ^ c1 ^ k0,
            p1 & MASK32,
            (p0 >> 32) ^ c3 ^ k1,
            p0 & MASK32,
        )
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return c0, c1, c2, c3


def splitmix64(z: int) -> int:
    """The finaliser of Steele, Lea and Flood's SplitMix64, OOPSLA 2014."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


def row_state(
    seed: int, epoch: int, batch: int, hop: int, vertex: int, purpose: int = NEIGHBORS
) -> int:
    """The state of one row: the first two words of Philox, low word first."""
    counter = (
        vertex & MASK32,
        (vertex >> 32 & 0xFFFF) | hop << 16 | purpose << 24,
        batch & MASK32,
        (batch >> 32 & 0xFF) | epoch << 8,
    )
    low, high, _, _ = philox4x32(counter, (seed & MASK32, seed >> 32 & MASK32))
    return low | high << 32


def part(state: int, tree: int) -> int:
    """The state of a row in one tree of a disjoint batch."""
    return splitmix64(state ^ (tree + 1) * GAMMA & MASK64)


def draw(state: int, j: int, bound: int) -> int:
    """Draw j of a row, reduced to [0, bound) by the high half of a product."""
    return splitmix64((state + (j + 1) * GAMMA) & MASK64) * bound >> 64


def choose(degree: int, fanout: int, replace: bool, state: int) -> list[int]:
    """The positions in [0, degree) that a row takes, in order."""
    if fanout < 0 or (not replace and degree <= fanout):
        return list(range(degree))
    if degree == 0:
        return []
    if replace:
        return [draw(state, j, degree) for j in range(fanout)]
    chosen: list[int] = []
    for j in range(fanout):
        last = degree - fanout + j
        position = draw(state, j, last + 1)
        chosen.append(last if position in chosen else position)
    return chosen


def reservoir(degree: int, fanout: int, state: int) -> list[int]:
    """The positions in [0, degree) that a row takes in mode "reservoir", by their slots."""
    if fanout < 0 or degree <= fanout:
        return list(range(degree))
    slots = list(range(fanout))
    for position in range(fanout, degree):
        slot = draw(state, position, position + 1)
        if slot < fanout:
            slots[slot] = position
    return slots


def integers(weights: list[float]) -> list[int]:
    """The weights of a row as integers."""
    bits, (_, exponent) = len(weights).bit_length(), math.frexp(max(weights))
    unit = Fraction(2) ** (exponent + bits - 62)
    return [max(int(Fraction(w) / unit), 1) for w in weights]


def alias_table(weights: list[int]) -> list[tuple[int, int]]:
    """For each slot the units that its own edge has of it, and the edge that has the others."""
    d, total, sums = len(weights), sum(weights), list(accumulate(weights, initial=0))
    shares = [(s * d << 32) // total for s in sums]
    units = [b - a for a, b in pairwise(shares)]
    less = [i for i in range(d) if units[i] < 1 << 32]
    more = [i for i in range(d) if units[i] >= 1 << 32]
    table = [(0, i) for i in range(d)]
    while less and more:
        i, j = less.pop(), more[-1]
        table[i] = units[i], j
        units[j] -= (1 << 32) - units[i]
        if units[j] < 1 << 32:
            less.append(more.pop())
    assert not less
    return table


def choose_by_weight(
    weights: list[float], without: set[int], fanout: int, replace: bool, state: int
) -> list[int]:
    """The positions that a row of positive weights takes, none of those ``without``, in order."""
    kept = [p for p in range(len(weights)) if p not in without]
    if fanout < 0 or (not replace and len(kept) <= fanout):
        return kept
    if not kept:
        return []
    d, whole = len(weights), integers(weights)
    table = alias_table(whole)

    def by_alias(j: int) -> int:
        product = splitmix64((state + (j + 1) * GAMMA) & MASK64) * d
        own, other = table[product >> 64]
        return product >> 64 if product >> 32 & MASK32 < own else other

    chosen: list[int | None] = []
    for j in range(fanout):
        p = by_alias(j)
        refused = p in without or (not replace and p in chosen)
        chosen.append(None if refused else p)
    spare = iter(range(fanout, 3 * fanout) if d > 32 else ())
    for j in range(fanout):
        if chosen[j] is not None:
            continue
        out = without if replace else without | {p for p in chosen if p is not None}
        found = (p for p in map(by_alias, spare) if p not in out)
        p = next(found, -1)
        if p < 0:
            left = [(p, w) for p, w in enumerate(whole) if p not in out]
            x = draw(state, 3 * fanout + j, sum(w for _, w in left))
            ends = accumulate(w for _, w in left)
            p = next(p for (p, _), end in zip(left, ends, strict=True) if x < end)
        chosen[j] = p
    return [p for p in chosen if p is not None]


def log(x: float) -> float:
    """The logarithm by the sequence that docs/developer/draws.md has."""
    m, e = math.frexp(x)  # m in [1/2, 1)
    if m < math.sqrt(0.5):
        m, e = 2 * m, e - 1
    s = (m - 1) / (m + 1)
    z, series = s * s, 1 / 21
    for k in range(19, 1, -2):
        series = series * z + 1 / k
    return e * math.log(2) + (2 * s + 2 * s * (z * series))


def one_minus_exp(x: float) -> float:
    """1 - exp(-x) by the sequence that docs/developer/draws.md has."""
    if x >= 64:
        return 1.0
    n = int(x * float.fromhex("0x1.71547652b82fep+0") + 0.5)
    high, low = float.fromhex("0x1.62e42fefa3p-1"), float.fromhex("0x1.3de6af278ece6p-42")
    r, series = (x - n * high) - n * low, 1.0
    for k in range(14, 1, -1):
        series = 1 - (r * (1 / k)) * series
    q = r * series
    return (1 - 2.0**-n) + 2.0**-n * q


def single(x: float) -> float:
    """The nearest number of 32 bits."""
    value: float = struct.unpack("f", struct.pack("f", x))[0]
    return value


def factors(
    weights: list[float] | None,
    without: set[int],
    degree: int,
    fanout: int,
    replace: bool,
    state: int,
    positions: list[int],
    within: range | None = None,
) -> list[float]:
    """Returns the Horvitz-Thompson factors of the positions that a row has taken.

    ``degree`` counts the positions that it may take; ``without`` has others, of a row with weights.
    If a row with weights takes positions ``within`` a part alone, they are in the order drawn.
    """
    if not positions or fanout < 0 or (not replace and degree <= fanout):
        return [1.0] * len(positions)
    if weights is None:
        return [single(degree / fanout)] * len(positions)
    whole = integers(weights)
    may = within or range(len(whole))
    total = sum(whole[p] for p in may if p not in without)
    if replace:
        return [single(float(total) / (float(fanout) * float(whole[p]))) for p in positions]
    table = alias_table(whole)

    def first_draw(j: int) -> int:
        product = splitmix64((state + (j + 1) * GAMMA) & MASK64) * len(weights)
        own, other = table[product >> 64]
        return product >> 64 if product >> 32 & MASK32 < own else other

    accepted = [j for j in range(fanout) if within or first_draw(j) == positions[j]]
    others = [j for j in range(fanout) if j not in accepted]
    gone, gaps = 0, [0.0] * (fanout + 1)
    for j in [*accepted, *others, fanout]:
        bits = splitmix64((state + (4 * fanout + j + 1) * GAMMA) & MASK64)
        gaps[j] = -log(((bits >> 12) * 2 + 1) * 2.0**-53) / float(total - gone)
        gone += whole[positions[j]] if j < fanout else 0
    tau = 0.0
    for start in range(0, fanout + 1, 32):
        part = gaps[start : start + 32]
        part += [0.0] * (32 - len(part))
        while len(part) > 1:
            half = len(part) // 2
            part = [a + b for a, b in zip(part[:half], part[half:], strict=True)]
        tau += part[0]
    return [single(1 / one_minus_exp(float(whole[p]) * tau)) for p in positions]


class Block(NamedTuple):
    indptr: list[int]
    indices: list[int]
    edge_ids: list[int]
    num_src: int
    num_dst: int
    dst_offset: int = 0
    edge_weights: list[float] | None = None


@dataclass
class Batch:
    nodes: list[int]
    output_nodes: list[int]
    output_index: list[int]
    blocks: list[Block]
    subgraph_ids: list[int] | None = None

    @classmethod
    def of(cls, batch: pgs.MiniBatch) -> Batch:
        """Every value of a batch on the CPU, for comparison."""
        blocks = [
            Block(
                block.indptr.tolist(),
                block.indices.tolist(),
                block.edge_ids.tolist(),
                block.num_src_nodes,
                block.num_dst_nodes,
                block.dst_offset,
                None if block.edge_weights is None else block.edge_weights.tolist(),
            )
            for block in batch.blocks
        ]
        return cls(
            batch.input_nodes.tolist(),
            batch.output_nodes.tolist(),
            batch.output_index.tolist(),
            blocks,
            None if batch.subgraph_ids is None else batch.subgraph_ids.tolist(),
        )


def sample(
    indptr: list[int],
    indices: list[int],
    seeds: list[int],
    fanouts: list[int],
    *,
    edge_ids: list[int] | None = None,
    replace: bool = False,
    frontier: str = "all",
    disjoint: bool = False,
    seed: int = 0,
    epoch: int = 0,
    batch: int = 0,
    exclude: list[int] | None = None,
    weights: list[float] | None = None,
    edge_weights: str | None = None,
    mode: str = "auto",
) -> Batch:
    """Returns the expected batch of ``PGSampler.sample``; ``weights`` are by edge id.

    No mode but ``"reservoir"`` has batches of its own.
    """
    purpose = RESERVOIRS if mode == "reservoir" else NEIGHBORS
    without = set(exclude or ())
    # Vertices, each with the number of its tree.
    roots = [(i if disjoint else -1, v) for i, v in enumerate(seeds)]
    place: dict[tuple[int, int], int] = {}
    for root in roots:
        place.setdefault(root, len(place))
    blocks = []
    expanded = 0
    for hop, fanout in enumerate(reversed(fanouts)):
        first = expanded if frontier == "new" else 0
        rows = list(place)[first:]
        expanded = len(place)
        starts, sources, ids = [0], [], []
        found: list[float] = []
        for tree, v in rows:
            row = range(indptr[v], indptr[v + 1]) if v + 1 < len(indptr) else range(0)
            if weights is None:
                edges = [e for e in row if (edge_ids[e] if edge_ids else e) not in without]
            else:
                edges = [e for e in row if weights[edge_ids[e] if edge_ids else e] > 0]
            state = row_state(seed, epoch, batch, hop, v, purpose)
            if disjoint:
                state = part(state, tree)
            if weights is None:
                own, out = None, set()
                if mode == "reservoir":
                    positions = reservoir(len(edges), fanout, state)
                else:
                    positions = choose(len(edges), fanout, replace, state)
            else:
                by_id = [edge_ids[e] if edge_ids else e for e in edges]
                out = {p for p, edge_id in enumerate(by_id) if edge_id in without}
                own = [weights[edge_id] for edge_id in by_id]
                positions = choose_by_weight(own, out, fanout, replace, state)
            allowed = len(edges) - len(out)
            found += factors(own, out, allowed, fanout, replace, state, positions)
            for position in positions:
                edge = edges[position]
                sources.append(place.setdefault((tree, indices[edge]), len(place)))
                ids.append(edge_ids[edge] if edge_ids else edge)
            starts.append(len(sources))
        kept = found if edge_weights == "ht" else None
        blocks.insert(0, Block(starts, sources, ids, len(place), len(rows), first, kept))
    nodes = [v for _, v in place]
    subgraph_ids = [tree for tree, _ in place] if disjoint else None
    return Batch(nodes, list(seeds), [place[root] for root in roots], blocks, subgraph_ids)
