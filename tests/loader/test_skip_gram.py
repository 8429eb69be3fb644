"""Pairs and negatives of walks: the rule in plain Python, laws, and arguments."""

from __future__ import annotations

import copy
import itertools
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import reference
import torch

import pygsampler as pgs
from pygsampler.torch import DataLoader, SkipGram, skip_gram
from tests.gpu import run_with_driver

NODES = 30


def graph(bits: int = 64) -> pgs.Graph:
    """A third of the vertices has no out-edge; of the last ones there is no row."""
    dtype = torch.int64 if bits == 64 else torch.int32
    draw = torch.Generator().manual_seed(2)
    src = torch.randint(0, 20, (120,), generator=draw).to(dtype)
    dst = (torch.rand(120, generator=draw) ** 3 * 28).to(dtype)
    return pgs.Graph.from_coo(src, dst, num_nodes=NODES)


def numbers(walks: Any, site: int, place: int, slots: int, count: int) -> list[int]:
    """The draws of a place, of 64 bits each."""
    known = walks.seed, walks.epoch, walks.batch, site, place // slots
    state = reference.row_state(*known, reference.NEGATIVES)
    return [reference.draw(state, place % slots * count + k, 1 << 64) for k in range(count)]


def slow(
    g: pgs.Graph, walks: Any, window: int, count: int, power: float, dynamic: bool
) -> list[tuple[int, int, list[int]]]:
    """By the words of docs/developer/walk-draws.md."""
    indptr = g.indptr.tolist()
    degrees = [b - a for a, b in itertools.pairwise(indptr)]
    degrees += [0] * (g.num_nodes - len(degrees))
    # 3/4 as the roots that the table takes.
    weights = [max(d, 1) ** 0.5 * (max(d, 1) ** 0.5) ** 0.5 if power else 1.0 for d in degrees]
    table = reference.alias_table(reference.integers(weights))

    def vertex(x: int) -> int:
        slot, coin = x * NODES >> 64, (x * NODES & reference.MASK64) >> 32
        own, other = table[slot]
        return slot if not power or coin < own else other

    rows, steps = walks.nodes.tolist(), walks.length + 1
    slots, found = steps * 2 * window, []
    for centre in range(steps):
        for slot, offset in enumerate([*range(-window, 0), *range(1, window + 1)]):
            for walk, row in enumerate(rows):
                context = centre + offset
                if not 0 <= context < steps or row[centre] < 0 or row[context] < 0:
                    continue
                if dynamic:
                    (x,) = numbers(walks, 1, walk * steps + centre, steps, 1)
                    if abs(offset) > (x * window >> 64) + 1:
                        continue
                place = walk * slots + centre * 2 * window + slot
                drawn = [vertex(x) for x in numbers(walks, 0, place, slots, count)]
                found.append((row[centre], row[context], drawn))
    return found


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("power", [0, 0.75])
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_rule(bits: int, power: float, dynamic: bool) -> None:
    g = graph(bits)
    for length, window, count in ((5, 2, 3), (3, 7, 1), (4, 1, 0), (0, 2, 2), (1, 1, 4)):
        sampler = pgs.RandomWalk(length, stop=0.1, walks_per_seed=2, seed=(1 << 64) - 9)
        walks = sampler.sample(g, torch.arange(NODES), epoch=5, batch=1 << 35)
        options = {"negatives": count, "power": power, "dynamic": dynamic}
        made = skip_gram(g, walks, window, **options)
        assert {t.dtype for t in made} == {walks.torch().nodes.dtype}
        assert made.negatives.shape == (len(made.centres), count)
        found = [(int(a), int(b), c.tolist()) for a, b, c in zip(*made, strict=True)]
        assert found == slow(g, walks, window, count, power, dynamic), (length, window)


def same(one: SkipGram, other: SkipGram) -> bool:
    return all(a.equal(b) for a, b in zip(one, other, strict=True))


def test_how_walks_come_changes_nothing() -> None:
    """Of a call, of a loader, copied, pickled: the same numbers have the same negatives."""
    g = graph()
    sampler = pgs.RandomWalk(6, seed=3)
    all_seeds = torch.arange(NODES) * 7 % NODES
    loader = DataLoader(g, all_seeds, sampler, batch_size=12, seed=3)
    for number, walks in enumerate(loader):
        assert walks.seed == 3
        seeds = all_seeds[12 * number : 12 * number + 12]
        one = sampler.sample(g, seeds, epoch=0, batch=number)
        wanted = skip_gram(g, walks, 2)
        for other in (one, one.torch(), one.cpu(), pickle.loads(pickle.dumps(one))):
            assert same(skip_gram(g, other, 2), wanted)
        assert not same(skip_gram(g, sampler.sample(g, seeds, batch=9), 2), wanted)


def test_the_table_is_made_once_and_goes_with_the_graph() -> None:
    g = graph()
    walks = pgs.RandomWalk(3, seed=1).sample(g, [0, 1, 2])
    skip_gram(g, walks, 1, power=0)
    assert not any(key[0] == "negatives" for key in g._source._derived)
    wanted = skip_gram(g, walks, 1)
    table = g._source._negatives(0.75).table
    assert same(skip_gram(g, walks, 1), wanted)
    assert g._source._negatives(0.75).table is table
    assert same(skip_gram(pickle.loads(pickle.dumps(g)), walks, 1), wanted)
    assert same(skip_gram(copy.copy(g), walks, 1), wanted)
    g.close()
    with pytest.raises(pgs.errors.ClosedError):
        skip_gram(g, walks, 1)


def test_near_contexts_have_more_weight() -> None:
    """With a window of 4 each centre reaches d steps with chance (5 - d) / 4."""
    g = pgs.Graph.from_coo([0, 1], [1, 0])
    walks = pgs.RandomWalk(40, walks_per_seed=400, seed=5).sample(g, [0, 1])
    made = skip_gram(g, walks, 4, negatives=0, dynamic=True)
    whole = skip_gram(g, walks, 4, negatives=0)
    # In a graph of two vertices a context at an even distance is the centre itself.
    even = Fraction(int((made.centres == made.contexts).sum()), len(made.centres))
    assert abs(float(even) - (3 + 1) / (4 + 3 + 2 + 1)) < 0.01
    assert abs(len(made.centres) / len(whole.centres) - 10 / 16) < 0.01


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"graph": 3}, TypeError, "graph: expected a pygsampler.Graph, got int"),
        ({"walks": [[0]]}, TypeError, "walks: expected Walks, got list"),
        ({"window": 0}, ValueError, "window: expected an integer from 1 to 4096, got 0"),
        ({"window": 1.5}, TypeError, "window: expected an integer from 1 to 4096, got float"),
        ({"negatives": -1}, ValueError, "negatives: expected an integer >= 0, got -1"),
        ({"power": 1.5}, ValueError, "power: expected a number in [0, 1], got 1.5"),
        ({"power": float("nan")}, ValueError, "power: expected a number in [0, 1], got nan"),
        ({"power": True}, TypeError, "power: expected a number, got bool"),
        ({"dynamic": 1}, TypeError, "dynamic: expected True or False, got int"),
    ],
)
def test_arguments(change: dict[str, Any], kind: type[Exception], text: str) -> None:
    g = graph()
    given = {"graph": g, "walks": pgs.RandomWalk(2).sample(g, [0]), "window": 1, **change}
    with pytest.raises(kind) as error:
        skip_gram(**given)
    assert str(error.value).startswith(text.partition(" got ")[0])
    assert text.partition(" got ")[2] in str(error.value)


def test_walks_that_stay() -> None:
    g = pgs.Graph.from_coo([0, 1, 3], [1, 2, 3], num_nodes=4)
    walks = pgs.RandomWalk(4, seed=0).sample(g, [0, 1, 2, 3]).torch()
    assert walks.nodes.tolist() == [
        [0, 1, 2, -1, -1],
        [1, 2, -1, -1, -1],
        [2, -1, -1, -1, -1],
        [3, 3, 3, 3, 3],
    ]
    assert walks.staying().tolist() == [
        [0, 1, 2, 2, 2],
        [1, 2, 2, 2, 2],
        [2, 2, 2, 2, 2],
        [3, 3, 3, 3, 3],
    ]


# Torch does not take the emulator for a GPU. Its memory is the host's, so tensors on the host
# stand in for those of a device.
CODE = """
import torch
import pygsampler as pgs
from pygsampler._loader import rng as module
from pygsampler.torch import skip_gram

there = False
module.device_of = lambda x: 0 if there else -1
module.devices.current_stream = lambda index: 0
module._address = lambda by, index: by.table._address
draw = torch.Generator().manual_seed(2)
for dtype in (torch.int64, torch.int32):
    edges = torch.randint(0, 500, (2, 1200), generator=draw).to(dtype)
    g = pgs.Graph.from_coo(*edges, num_nodes=510)
    walks = pgs.RandomWalk(9, stop=0.1, seed=8).sample(g, torch.arange(510)).torch()
    for window, options in OPTIONS:
        made = []
        for there in (False, True):
            made.append(skip_gram(g, walks, window, **options))
        assert len(made[0].centres) > 1000
        assert all(a.equal(b) for a, b in zip(*made)), options
print("same")
"""

OPTIONS = [
    (2, {}),
    (5, {"negatives": 17, "power": 0}),
    (3, {"dynamic": True, "power": 1, "negatives": 1}),
    (1, {"negatives": 0}),
]


def test_numbers_of_a_gpu(emulator: Path) -> None:
    code = f"OPTIONS = {OPTIONS!r}\n" + CODE
    assert run_with_driver(emulator, code) == "same\n"
