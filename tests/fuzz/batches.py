"""Calls on batches, blocks and arrays: views, conversions, exports, pickles."""

from __future__ import annotations

import copy
import gc
import pickle
from random import Random
from typing import Any

import numpy as np

import pygsampler as pgs
from tests.fuzz.samplers import sample
from tests.fuzz.values import no_integer, not_from, pyarrow, torch
from tests.fuzz.world import (
    NEW,
    BatchModel,
    World,
    as_reference,
    check_message,
    expect,
    operation,
    refused,
)


def new_batch(world: World, random: Random) -> BatchModel:
    while not world.batches:
        sample(world, random)
    return random.choice(tuple(world.batches) or (new_batch(world, random),))


def new_array(world: World, random: Random) -> Any:
    model = world.some("batches", random)
    block = random.choice(model.batch.blocks)
    made: Any = random.choice(
        (
            model.batch.input_nodes,
            model.batch.output_nodes,
            model.batch.output_index,
            block.indptr,
            block.indices,
            block.edge_ids,
            block.src_nodes,
            block.dst_nodes,
            block.coo()[1],
        )
    )
    world.keep("arrays", made, random)
    return made


NEW["batches"] = new_batch
NEW["arrays"] = new_array
operation(2)(new_array)


@operation(2)
def read_batch(world: World, random: Random) -> None:
    """A batch is what it was, whatever became of its graph and its sampler."""
    model = world.some("batches", random)
    expect(as_reference(model.batch) == model.values, "a batch has changed", model.draw)
    expect(f"seeds={len(model.draw.seeds)}" in repr(model.batch), repr(model.batch))
    expect("<table>" in model.batch._repr_html_(), "html")
    expect(
        model.batch.num_edges == sum(len(block.indices) for block in model.values.blocks), "edges"
    )


@operation(2)
def convert_batch(world: World, random: Random) -> None:
    model = world.some("batches", random)
    place = random.randrange(len(model.batch.blocks))
    block = model.values.blocks[place]
    if model.batch.device != "cpu":
        with refused(TypeError):
            random.choice((model.batch.numpy, model.batch.arrow))()
        return
    kinds = ["numpy"] + ["torch"] * (torch is not None) + ["arrow"] * (pyarrow is not None)
    kind = random.choice(kinds)
    made: Any = getattr(model.batch, kind)()
    expect(made.input_nodes.tolist() == model.values.nodes, kind)
    expect(made.blocks[place].edge_ids.tolist() == block.edge_ids, kind)
    expect(made.blocks[place].num_dst_nodes == block.num_dst, kind)
    expect(repr(made).startswith(f"{type(made).__name__}("), kind)
    if kind != "arrow":
        rows = [
            block.dst_offset + row
            for row in range(block.num_dst)
            for _ in range(*block.indptr[row : row + 2])
        ]
        expect(made.blocks[place].coo()[1].tolist() == rows, kind)
        expect(made.blocks[place].edge_index.tolist() == [block.indices, rows], kind)


@operation(1)
def pickle_batch(world: World, random: Random) -> None:
    model = world.some("batches", random)
    if model.batch.device != "cpu":
        with refused(TypeError):
            pickle.dumps(model.batch)
        return
    how = random.randrange(4)
    if how == 0:
        other = random.choice((copy.copy, copy.deepcopy))(model.batch)
    elif how == 1:
        buffers: list[Any] = []
        text = pickle.dumps(model.batch, 5, buffer_callback=buffers.append)
        other = pickle.loads(text, buffers=[bytes(buffer.raw()) for buffer in buffers])
    else:
        other = pickle.loads(pickle.dumps(model.batch, random.randint(2, 5)))
    expect(as_reference(other) == model.values, "a pickled batch differs")
    with refused(TypeError):
        pickle.dumps(random.choice(model.batch.blocks))


@operation(1)
def drop_batches(world: World, random: Random) -> None:
    """What else shows their memory keeps it."""
    world.batches.clear()
    if random.random() < 0.02:
        gc.collect()


@operation(4)
def use_array(world: World, random: Random) -> None:
    values = world.some("arrays", random)
    if values.device != "cpu":
        with refused(TypeError):
            values.numpy()
        values = values.cpu()
    length, bits = len(values), 32 if values.dtype == "int32" else 64
    expect(values.shape == (length,) and values.nbytes == length * bits // 8, repr(values))
    kind = random.randrange(8)
    if kind == 0:
        expect(list(values) == values.tolist(), "iteration")
    elif kind == 1 and length:
        place = random.randrange(-length, length)
        expect(values[place] == values.tolist()[place], "index", place)
    elif kind == 2:
        start, stop = (random.choice((None, 0, 1, -1, length, 1 << 70)) for _ in range(2))
        part = values[start:stop]
        expect(part.tolist() == values.tolist()[start:stop], "slice", start, stop)
        world.keep("arrays", part, random)
    elif kind == 3:
        expect(np.asarray(values).tolist() == values.tolist(), "asarray")
        expect(np.array(values, dtype=np.float32).dtype == np.float32, "array")
        expect(np.from_dlpack(values).tolist() == values.tolist(), "from_dlpack")
    elif kind == 4 and torch is not None:
        expect(values.torch().tolist() == values.tolist(), "torch")
        expect(torch.as_tensor(np.array(values)).tolist() == values.tolist(), "as_tensor")
    elif kind == 5 and pyarrow is not None:
        expect(pyarrow.array(values).to_pylist() == values.tolist(), "pyarrow")
    elif kind == 6:
        try:
            other = pickle.loads(pickle.dumps(values, random.randint(2, 5)))
        except TypeError as error:
            # A view of a caller's array that has no pickle.
            check_message(error)
            return
        except FileNotFoundError:
            # One of a graph file travels by its path.
            return
        expect(other.tolist() == values.tolist(), "pickle")
    else:
        capsule = values.__dlpack__(max_version=(1, 0)) if values.readonly else values.__dlpack__()
        expect(type(capsule).__name__ == "PyCapsule", capsule)


@operation(1.5)
def misuse_array(world: World, random: Random) -> None:
    values = world.some("arrays", random)
    if values.device != "cpu":
        return
    kind = random.randrange(8)
    if kind == 0:
        with refused(IndexError):
            values[not_from(random, -len(values), len(values) - 1)]
    elif kind == 1:
        key = no_integer(random)
        # A truth is an index of a sequence; NumPy's is one up to NumPy 1.
        if isinstance(key, (bool, np.bool_)):
            return
        with refused(TypeError):
            values[key]
    elif kind == 2:
        with refused(ValueError):
            values[:: random.choice((2, -1, -3, 1 << 40))]
    elif kind == 3:
        with refused(BufferError):
            values.__dlpack__(stream=random.choice((0, 1, 2, "x", 1 << 70)))
    elif kind == 4:
        with refused(BufferError):
            values.__dlpack__(dl_device=random.choice(((2, 0), (99, 3), (-1, -1))))
    elif kind == 5:
        with refused(TypeError, AttributeError):
            random.choice((type(values), pgs.MiniBatch, pgs.Block, pgs.Graph))()
    elif kind == 6:
        with refused(TypeError, AttributeError):
            values[0] = 3
    else:
        with refused(AttributeError):
            _ = values.__cuda_array_interface__


@operation(0.7)
def write_to_batch(world: World, random: Random) -> None:
    """A batch is the caller's own memory: writing to it harms no other."""
    model = world.some("batches", random)
    if world.shared or model.batch.device != "cpu":
        return
    edges = model.batch.blocks[0].edge_ids.numpy()
    if not edges.flags.writeable:
        return
    before = edges.copy()
    edges[...] = random.choice((-1, 0, 1 << 30))
    for other in world.batches:
        if other.batch is not model.batch:
            expect(as_reference(other.batch) == other.values, "another batch has changed")
    edges[...] = before
