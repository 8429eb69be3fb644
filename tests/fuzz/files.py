"""Calls that save graphs and open them again, and that open what is no graph."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np

import pygsampler as pgs
from tests.fuzz.graphs import agrees
from tests.fuzz.values import no_integer
from tests.fuzz.world import REFUSALS, World, check_message, expect, operation, refused


@operation(0.4)
def save_and_open(world: World, random: Random) -> None:
    """What is opened is what was saved, also once its file has been removed."""
    model = world.open_graph(random)
    labels = np.arange(model.num_nodes, dtype=random.choice(("f4", "i1", "<i8")))
    arrays = {"labels": labels} if random.random() < 0.5 else None
    with tempfile.TemporaryDirectory(prefix="pygsampler-fuzz-") as folder:
        path = Path(folder) / "graph.pgs"
        model.graph.save(path, arrays=arrays, tables=random.choice(([], ["w"], None)))
        opened = pgs.Graph.open(random.choice((path, str(path))), verify=random.random() < 0.3)
    made = replace(model, graph=opened)
    agrees(made)
    expect(opened.indices.tolist() == list(model.indices), "indices of a file")
    if arrays is not None:
        expect(
            np.asarray(opened.file_arrays["labels"]).tolist() == labels.tolist(), "labels of a file"
        )
    world.keep("graphs", made, random)


@operation(0.4)
def wrong_file(world: World, random: Random) -> None:
    """A file that was changed or cut at any place is refused, or is the graph that it was."""
    model = world.open_graph(random)
    if model.num_nodes >= 4000:
        return
    with tempfile.TemporaryDirectory(prefix="pygsampler-fuzz-") as folder:
        path = Path(folder) / "graph.pgs"
        with refused(OSError, *REFUSALS, pgs.Error):
            pgs.Graph.open(random.choice((path, folder, b"\0", no_integer(random))))
        model.graph.save(path, tables=random.choice(([], ["w"])))
        raw = bytearray(path.read_bytes())
        if random.random() < 0.5:
            raw = raw[: random.randrange(len(raw))]
        else:
            raw[random.randrange(len(raw))] ^= 1 << random.randrange(8)
        path.write_bytes(os.urandom(100) if random.random() < 0.1 else raw)
        try:
            opened = pgs.Graph.open(path, verify=True)
            expect(opened.indices.tolist() == list(model.indices), "a broken file was opened")
        except (OSError, *REFUSALS, pgs.Error) as error:
            check_message(error)
