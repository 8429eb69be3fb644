from __future__ import annotations

import pickle
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
import torch
from graphs import as_lists, circulant

import pygsampler as pgs

SEEDS = [7, 3, 7, 0]


@pytest.fixture(params=[32, 64])
def batch(request) -> pgs.MiniBatch:
    graph = circulant(40, 6, request.param)
    return pgs.PGSampler([3, 2], seed=1).sample(graph, SEEDS, epoch=2, batch=9)


def test_duplicate_seeds_are_kept_and_sampled_once(batch):
    assert batch.output_nodes.tolist() == SEEDS
    assert batch.blocks[-1].dst_nodes.tolist() == [7, 3, 0]
    assert batch.output_index.tolist() == [0, 1, 0, 2]
    assert batch.blocks[-1].num_edges == 6
    assert batch.input_nodes.tolist()[:3] == [7, 3, 0]


def test_distinct_seeds_need_no_second_copy():
    batch = pgs.PGSampler([2], seed=0).sample(circulant(9, 3), [4, 2])
    assert batch.output_index.tolist() == [0, 1]
    assert batch.output_nodes._address == batch.input_nodes._address


def test_it_says_where_it_comes_from(batch):
    assert (batch.epoch, batch.batch) == (2, 9)
    assert batch.num_edges == sum(block.num_edges for block in batch.blocks)


@pytest.mark.parametrize("name", ["torch", "numpy", "arrow"])
def test_conversions_share_the_memory_and_keep_the_values(batch, name):
    converted = getattr(batch, name)()
    kind = {"torch": torch.Tensor, "numpy": np.ndarray, "arrow": pa.Array}[name]

    def address(values) -> int:
        if name == "torch":
            return values.data_ptr()
        return values.ctypes.data if name == "numpy" else values.buffers()[1].address

    assert (converted.epoch, converted.batch) == (2, 9)
    for field in ("input_nodes", "output_nodes", "output_index"):
        values = getattr(converted, field)
        assert isinstance(values, kind)
        assert values.tolist() == getattr(batch, field).tolist()
        assert address(values) == getattr(batch, field)._address
    for theirs, ours in zip(converted.blocks, batch.blocks, strict=True):
        for field in ("indptr", "indices", "edge_ids", "src_nodes", "dst_nodes"):
            values = getattr(theirs, field)
            assert isinstance(values, kind)
            assert values.tolist() == getattr(ours, field).tolist()
            assert address(values) == getattr(ours, field)._address
        for field in ("num_src_nodes", "num_dst_nodes", "num_edges"):
            assert getattr(theirs, field) == getattr(ours, field)
        assert repr(theirs).endswith(repr(ours).removeprefix("Block"))
    assert repr(converted) == f"{repr(batch).removesuffix(')')}, form={name!r})"


def test_names_are_there_before_they_are_used(batch):
    """Tab completion lists tensors that are made when they are first used."""
    names = {"input_nodes", "output_nodes", "output_index", "blocks", "num_edges"}
    of_block = {"indptr", "indices", "edge_ids", "src_nodes", "dst_nodes", "num_edges"}
    for converted in (batch.torch(), batch.numpy(), batch.arrow()):
        assert names <= set(dir(converted))
        assert of_block <= set(dir(converted.blocks[0]))
        assert converted.num_edges == batch.num_edges


@pytest.mark.parametrize("name", ["torch", "numpy"])
def test_edge_index_is_what_pyg_takes(batch, name):
    for theirs, ours in zip(getattr(batch, name)().blocks, batch.blocks, strict=True):
        src, dst = ours.coo()
        assert theirs.edge_index.tolist() == [src.tolist(), dst.tolist()]
        assert str(theirs.edge_index.dtype).endswith("int64")
        assert [part.tolist() for part in theirs.coo()] == [src.tolist(), dst.tolist()]
        assert str(theirs.coo()[1].dtype).endswith(ours.indices.dtype)


def test_a_torch_batch_moves_as_a_whole(batch):
    converted = batch.torch()
    same = converted.to("cpu")
    assert same.input_nodes.data_ptr() == converted.input_nodes.data_ptr()
    meta = converted.to("meta")
    assert meta.output_index.is_meta
    for moved, block in zip(meta.blocks, converted.blocks, strict=True):
        for field in ("indptr", "indices", "edge_ids", "src_nodes", "dst_nodes"):
            assert getattr(moved, field).is_meta
            assert getattr(moved, field).shape == getattr(block, field).shape
    assert (meta.epoch, meta.batch) == (2, 9)


def test_a_batch_may_be_written_to(batch):
    converted = batch.torch()
    converted.input_nodes[0] = 5
    assert batch.input_nodes[0] == batch.numpy().input_nodes[0] == 5


class Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.rows = 0

    def handle_starttag(self, tag, attrs):
        self.rows += tag == "tr"

    def handle_data(self, data):
        self.text.append(data)


def test_a_notebook_shows_a_table_of_the_blocks(batch):
    cells = Cells()
    cells.feed(batch._repr_html_())
    assert cells.rows == 3
    dtype = batch.input_nodes.dtype
    assert cells.text[0] == f"MiniBatch of 4 seeds, {dtype}, epoch 2, batch 9"
    assert cells.text[1:5] == ["block", "sources", "destinations", "edges"]
    for i, block in enumerate(batch.blocks):
        row = cells.text[5 + 4 * i : 9 + 4 * i]
        counts = (block.num_src_nodes, block.num_dst_nodes, block.num_edges)
        assert row == [f"blocks[{i}]", *map(str, counts)]


def test_repr_is_one_line(batch):
    text = repr(batch)
    assert text.startswith(f"MiniBatch(seeds=4, input_nodes={len(batch.input_nodes)}, blocks=[")
    assert "->3 by 6]" in text
    assert text.endswith("epoch=2, batch=9)")
    assert "\n" not in text


def test_it_is_made_by_sampling_only():
    with pytest.raises(TypeError, match="MiniBatch: created by"):
        pgs.MiniBatch()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_keeps_everything(batch, protocol):
    copy = pickle.loads(pickle.dumps(batch, protocol))
    assert as_lists(copy) == as_lists(batch)
    assert (copy.epoch, copy.batch) == (2, 9)
    assert copy.input_nodes._address != batch.input_nodes._address
    copy.torch().input_nodes[0] = 99
    assert batch.input_nodes[0] == 7


def test_pickling_out_of_band_copies_nothing(batch):
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(batch, 5, buffer_callback=buffers.append)
    assert len(data) < 200
    before = as_lists(batch)
    address = batch.input_nodes._address
    del batch
    copy = pickle.loads(data, buffers=buffers)
    assert as_lists(copy) == before
    assert copy.input_nodes._address == address
    buffers.clear()
    # Bytes that lie at an odd address, and must not be written to.
    shifted = memoryview(b" " + bytes(copy._source._memory))[1:]
    writeable = pickle.loads(data, buffers=[shifted])
    assert as_lists(writeable) == before
    writeable.torch().input_nodes[0] = 99
    assert as_lists(copy) == before


@pytest.mark.parametrize("disjoint", [False, True])
def test_blocks_of_a_new_frontier_share_their_numbering_in_every_library(disjoint):
    sampler = pgs.PGSampler([2, 3, 2], frontier="new", disjoint=disjoint, seed=1)
    batch = sampler.sample(circulant(60, 7), [5, 9, 5], batch=0)
    nodes = batch.input_nodes.tolist()
    seeds = 3 if disjoint else 2
    starts = [block.dst_offset for block in reversed(batch.blocks)]
    assert starts == [0, seeds, batch.blocks[-1].num_src_nodes]
    for library in (batch, batch.numpy(), batch.torch(), pickle.loads(pickle.dumps(batch.torch()))):
        for block, own in zip(library.blocks, batch.blocks, strict=True):
            first, count = own.dst_offset, own.num_dst_nodes
            assert block.dst_offset == first and block.num_dst_nodes == count
            assert block.dst_nodes.tolist() == nodes[first : first + count]
            src, dst = block.coo()
            degrees = own.indptr.numpy()[1:] - own.indptr.numpy()[:-1]
            assert dst.tolist() == np.repeat(range(first, first + count), degrees).tolist()
            # circulant: the in-neighbours of v are the 7 after it.
            assert all(
                (nodes[s] - nodes[d]) % 60 in range(1, 8) for s, d in zip(src, dst, strict=True)
            )
        subgraph_ids = library.subgraph_ids
        assert (subgraph_ids is None) != disjoint
        if disjoint:
            assert subgraph_ids.tolist()[:3] == [0, 1, 2] and len(subgraph_ids) == len(nodes)
    assert pickle.loads(pickle.dumps(batch)).input_nodes.tolist() == nodes
