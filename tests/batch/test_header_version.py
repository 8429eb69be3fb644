"""Results whose words are of another version are refused by name."""

from __future__ import annotations

import pickle
import struct

import pytest
from graphs import circulant

import pygsampler as pgs
from pygsampler._batch import layout as at
from tests.support.research import HAS_RESEARCH

GRAPH = circulant(60, 5)
TYPES = pgs.Graph.from_coo({("a", "r", "a"): ([0, 1, 2], [1, 2, 0])}, num_nodes={"a": 3})


@pytest.mark.parametrize(
    ("magic", "result", "first"),
    [
        (at.MAGIC, pgs.PGSampler([3], seed=1).sample(GRAPH, [1, 2]), "input_nodes"),
        (at.MAGIC, pgs.PGSampler([3], seed=1).sample(TYPES, {"a": [0]}), "input_nodes"),
        (at.WALK_MAGIC, pgs.RandomWalk(3, seed=1).sample(GRAPH, [1, 2]), "nodes"),
        *(
            [(at.STEP_MAGIC, pgs.research.KHop([2], seed=1).sample(GRAPH, [1, 2]), "nodes")]
            if HAS_RESEARCH
            else []
        ),
    ],
    ids=["batch", "batch by type", "walks", *(["steps"] if HAS_RESEARCH else [])],
)
def test_pickles_of_version_1_are_refused(magic: int, result: object, first: str) -> None:
    pickled = pickle.dumps(result)
    signature = struct.pack("<q", magic)
    assert pickled.count(signature) == 1
    older = pickled.replace(signature, struct.pack("<q", magic & 0xFFFFFFFF))
    text = r"^header: expected version 2 of a result's words, got version 1; results of another"
    with pytest.raises(ValueError, match=text):
        getattr(pickle.loads(older), first)
