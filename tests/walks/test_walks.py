"""``Walks``: its views, in the arrays of other libraries, and as it is shown."""

from __future__ import annotations

import copy
import gc
import pickle
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from walk_graphs import Shape, of_rows, scattered

import pygsampler as pgs
from pygsampler._arrays import dlpack
from pygsampler._arrays.array import Array
from pygsampler._arrays.dtypes import ArrayRegion
from pygsampler.walks.result import Walks

SHAPE = of_rows(scattered(40, 9, 2), 40, "mixed")
STOPS = {"stop": 0.2, "seed": 3}


def made(bits: int = 64, shape: Shape = SHAPE, **options: Any) -> Walks:
    given = {"walks_per_seed": 3, **STOPS, **options}
    sampler = pgs.RandomWalk(given.pop("length", 6), **given)
    return sampler.sample(shape.graph(bits), range(shape.num_nodes), epoch=2, batch=5)


@pytest.mark.parametrize("bits", [32, 64])
def test_what_they_say(bits: int) -> None:
    walks = made(bits)
    assert len(walks) == 120 and walks.length == 6 and walks.walks_per_seed == 3
    assert (walks.epoch, walks.batch, walks.device, walks.num_edges) == (2, 5, "cpu", 720)
    assert walks.nodes.shape == (120, 7) and walks.edge_ids.shape == (120, 6)
    assert walks.lengths.shape == (120,) and walks.lengths.dtype == "int32"
    assert walks.nodes.dtype == f"int{bits}"
    assert walks.per_step().shape == (7, 120)
    assert walks.nodes.numpy()[:, 0].tolist() == [seed for seed in range(40) for _ in range(3)]


def test_both_formats_are_one_memory() -> None:
    walks = made()
    by_sample, by_step = walks.per_sample().numpy(), walks.per_step().numpy()
    assert np.shares_memory(by_sample, by_step)
    assert by_step.flags.c_contiguous and by_sample.flags.f_contiguous
    np.testing.assert_array_equal(by_sample, by_step.T)
    np.testing.assert_array_equal(by_sample, walks.nodes.numpy())
    by_step[3, 7] = 39
    assert walks.nodes.numpy()[7, 3] == 39


def test_padding_is_after_the_end() -> None:
    for edges in (False, True):
        walks = made(edge_ids=edges).numpy()
        place = np.arange(7)
        np.testing.assert_array_equal(walks.nodes == -1, place > walks.lengths[:, None])
        np.testing.assert_array_equal(walks.edge_ids == -1, place[:-1] >= walks.lengths[:, None])
        assert set(walks.lengths.tolist()) == set(range(7))


def test_views_of_other_libraries() -> None:
    walks = made(edge_ids=True)
    arrays, tensors = walks.numpy(), walks.torch()
    assert (walks.form, arrays.form, tensors.form) == ("array", "numpy", "torch")
    for name in ("nodes", "edge_ids", "lengths"):
        array, tensor = getattr(arrays, name), getattr(tensors, name)
        assert array.tolist() == tensor.tolist() == getattr(walks, name).tolist()
        assert tensor.data_ptr() == array.ctypes.data
        assert tuple(8 * s for s in tensor.stride()) == array.strides or name == "lengths"
    assert arrays.per_step().tolist() == tensors.per_step().tolist() == walks.per_step().tolist()
    assert tensors.per_step().is_contiguous() and tensors.per_step_edges().is_contiguous()
    assert tensors.torch() is tensors and len(tensors) == 120
    assert (tensors.length, tensors.walks_per_seed, tensors.num_edges) == (6, 3, 720)
    assert (tensors.epoch, tensors.batch, str(tensors.device)) == (2, 5, "cpu")


def test_ends() -> None:
    walks = made()
    nodes = walks.nodes.numpy()
    want = [row[row >= 0][-1] for row in nodes]
    assert walks.torch().ends().tolist() == want
    nothing = pgs.RandomWalk(0).sample(SHAPE.graph(), [4, 5]).torch()
    assert nothing.ends().tolist() == [4, 5]


def test_arrow_has_no_padding() -> None:
    for edges in (False, True):
        walks = made(edge_ids=edges)
        table = walks.arrow()
        want = [row[row >= 0].tolist() for row in walks.nodes.numpy()]
        assert isinstance(table, pa.Table) and table["nodes"].to_pylist() == want
        assert table.column_names == (["nodes", "edge_ids"] if edges else ["nodes"])
        if edges:
            ids = zip(walks.edge_ids.numpy(), walks.lengths.numpy(), strict=True)
            assert table["edge_ids"].to_pylist() == [row[:length].tolist() for row, length in ids]
    assert pgs.RandomWalk(3).sample(SHAPE.graph(), []).arrow().num_rows == 0


def test_an_arrow_table_keeps_jumps() -> None:
    walks = made(stop=0.0, restart=0.5, count_jumps=True, edge_ids=True)
    table = walks.arrow()
    ids = [row for row in table["edge_ids"].to_pylist() if -1 in row]
    assert len(ids) > 50
    assert table["nodes"].combine_chunks().flatten().to_numpy().min() >= 0


def test_edges_are_made_once() -> None:
    walks = made()
    first = walks.edge_ids.numpy()
    assert np.shares_memory(first, walks.edge_ids.numpy())
    tensors = made().torch()
    assert tensors.edge_ids.data_ptr() == tensors.edge_ids.data_ptr()
    assert tensors.edge_ids.tolist() == first.tolist()


def test_arrays_outlive_walks_and_graph() -> None:
    walks = made()
    want = walks.nodes.tolist(), walks.edge_ids.tolist(), walks.lengths.tolist()
    arrays = walks.nodes, walks.edge_ids.numpy(), walks.torch().lengths
    del walks
    gc.collect()
    made(seed=7)  # in the memory that was given back, if it was
    assert tuple(each.tolist() for each in arrays) == want


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol: int) -> None:
    walks = made(edge_ids=True)
    again = pickle.loads(pickle.dumps(walks, protocol))
    assert repr(again) == repr(walks)
    for name in ("nodes", "edge_ids", "lengths"):
        assert getattr(again, name).tolist() == getattr(walks, name).tolist()
    bare = pickle.loads(pickle.dumps(made(), protocol))
    assert bare.nodes.tolist() == walks.nodes.tolist()
    with pytest.raises(ValueError, match="edge_ids: expected walks of a sampler with edge_ids"):
        _ = bare.edge_ids


@pytest.mark.parametrize("copied", [lambda it: pickle.loads(pickle.dumps(it)), copy.deepcopy])
def test_walks_in_torch_pickle(copied: Any) -> None:
    """So workers of torch's DataLoader can hand them over."""
    walks = made(edge_ids=True).torch()
    assert walks.edge_ids is not None
    again = copied(walks)
    assert repr(again) == repr(walks)
    for name in ("nodes", "edge_ids", "lengths"):
        assert getattr(again, name).equal(getattr(walks, name))
    bare = copied(made().torch())
    assert bare.nodes.equal(walks.nodes) and bare.slots is None
    with pytest.raises(ValueError, match="edge_ids: expected walks of a sampler with edge_ids"):
        _ = bare.edge_ids
    other = made().torch()
    copied(other)
    assert other.edge_ids.equal(walks.edge_ids)


def test_repr() -> None:
    assert repr(made(32)) == (
        "Walks(120, length=6, walks_per_seed=3, dtype=int32, epoch=2, batch=5)"
    )
    assert repr(made().torch()) == (
        "Walks(120, length=6, walks_per_seed=3, dtype=int64, epoch=2, batch=5, form='torch')"
    )


class Cells(HTMLParser):
    """Rows of the table, as their texts; unclosed tags are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_a_notebook_shows_walks() -> None:
    for walks, steps in ((made(), 7), (made(length=20), 9), (made(length=0), 1)):
        page = Cells()
        page.feed(walks._repr_html_())
        assert not page.open
        head, *rows = page.rows
        longer = walks.length + 1 > steps
        assert head == ["walk", *map(str, range(steps)), *[""] * longer, "steps"]
        for number, row in enumerate(rows[:6]):
            ids = walks.nodes.numpy()[number, :steps]
            shown = ["" if v < 0 else str(v) for v in ids]
            length = str(walks.lengths[number])
            assert row == [str(number), *shown, *["…"] * longer, length]
        assert len(rows) == 7 and rows[6][0] == "…"
    page = Cells()
    page.feed(pgs.RandomWalk(2).sample(SHAPE.graph(), [])._repr_html_())
    assert len(page.rows) == 1


def test_they_are_made_by_samplers_only() -> None:
    with pytest.raises(TypeError, match=r"created by RandomWalk\.sample"):
        Walks()


# ---- arrays whose memory is not in their order -----------------------------------------------


@pytest.fixture(params=[32, 64])
def turned(request: pytest.FixtureRequest) -> Any:
    walks = made(request.param)
    return walks.nodes, walks.per_step().numpy().T.copy()


def test_a_turned_array_is_what_it_says(turned: Any) -> None:
    array, want = turned
    assert array.shape == want.shape and len(array) == len(want)
    assert array.nbytes == want.nbytes and array.dtype == want.dtype
    assert array.tolist() == want.tolist()
    assert [row.tolist() for row in array] == want.tolist()
    assert array[3].tolist() == want[3].tolist() and array[-1].tolist() == want[-1].tolist()
    assert array[2:5].tolist() == want[2:5].tolist() and array[9:2].tolist() == []
    assert f"shape={want.shape}" in repr(array)
    with pytest.raises(IndexError):
        array[len(want)]
    with pytest.raises(ValueError, match="slice of step 1"):
        array[::2]


def test_a_turned_array_goes_everywhere_with_its_strides(turned: Any) -> None:
    array, want = turned
    width = want.itemsize
    strides = (width, width * len(want))
    found = array.numpy()
    assert found.strides == strides and found.flags.writeable
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(np.asarray(array, dtype=np.float64), want)
    taken = np.from_dlpack(array)
    assert taken.strides == strides and np.shares_memory(taken, found)
    np.testing.assert_array_equal(taken, want)
    for tensor in (array.torch(), torch.from_dlpack(array)):
        assert tensor.stride() == (1, len(want)) and tensor.data_ptr() == found.ctypes.data
        np.testing.assert_array_equal(tensor.numpy(), want)


class Capsule:
    """Another library's array, which hands out a capsule of one of ours."""

    def __init__(self, array: Any, **options: Any) -> None:
        self.array, self.options = array, options

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self.array.__dlpack_device__()
        return device

    def __dlpack__(self, **asked: Any) -> Any:
        return self.array.__dlpack__(**self.options)


VERSIONED = {"max_version": (1, 0)}


@pytest.mark.parametrize("options", [{}, {"copy": True}, VERSIONED, {**VERSIONED, "copy": True}])
def test_capsules_have_strides(turned: Any, options: dict[str, Any]) -> None:
    array, want = turned
    copied = options.get("copy", False)
    taken = dlpack.borrow(Capsule(array, **options))
    assert taken.shape == want.shape
    assert taken.strides == ((7, 1) if copied else (1, 120))
    assert (taken.address == array._address) is not copied
    if copied:
        shown = ArrayRegion(taken.address, array.dtype, taken.shape, taken.capsule, True)
        np.testing.assert_array_equal(Array._of_region(shown).numpy(), want)
    if "max_version" not in options:
        tensor = torch.utils.dlpack.from_dlpack(array.__dlpack__(**options))
        np.testing.assert_array_equal(tensor.numpy(), want)
        assert (tensor.data_ptr() == array._address) is not copied


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_turned_array_pickles(turned: Any, protocol: int) -> None:
    array, want = turned
    again = pickle.loads(pickle.dumps(array, protocol))
    assert again.shape == want.shape and again.dtype == want.dtype
    np.testing.assert_array_equal(again.numpy(), want)


def test_a_turned_array_is_taken_as_features(turned: Any) -> None:
    array, want = turned
    rows = pgs.Features.from_tensor(array)[[0, 5, 119]]
    np.testing.assert_array_equal(np.asarray(rows), want[[0, 5, 119]])


def test_one_step_and_one_walk() -> None:
    """Where a dimension has one element, or none."""
    graph = SHAPE.graph()
    for seeds, length in (([3], 4), ([3, 4, 5], 0), ([3], 0), ([], 0), ([], 3)):
        walks = pgs.RandomWalk(length).sample(graph, seeds)
        shape = (len(seeds), length + 1)
        assert walks.nodes.shape == walks.nodes.numpy().shape == tuple(walks.nodes.torch().shape)
        assert walks.nodes.shape == shape == np.from_dlpack(walks.nodes).shape
        assert walks.nodes.tolist() == walks.nodes.numpy().tolist()
        assert walks.edge_ids.numpy().shape == (len(seeds), length)
        assert pickle.loads(pickle.dumps(walks.nodes)).shape == shape
        assert [row[0] for row in walks.nodes] == seeds
