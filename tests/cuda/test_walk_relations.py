"""The forms of a graph that walks read, on a device: those of the CPU, put there once."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs

NODES, EDGES, KINDS = 60, 900, 4
FORMS: list[dict[str, Any]] = [
    {"direction": direction, "prob": prob, "types": types, "second": second}
    for direction in ("in", "out")
    for prob in (None, "p", "z")
    for types in (None, "t")
    for second in (False, True)
]


def in_memory(symmetric: bool = False) -> pgs.Graph:
    draw = np.random.default_rng(3)
    src, dst = draw.integers(0, NODES - 5, (2, EDGES))
    if symmetric:
        order = draw.permutation(2 * EDGES)
        src, dst = np.concatenate([src, dst])[order], np.concatenate([dst, src])[order]
    positive = draw.exponential(size=len(src))
    data = {
        "p": positive,
        "z": positive * (draw.random(len(src)) > 0.4),
        "t": draw.integers(0, KINDS, len(src)),
    }
    return pgs.Graph.from_coo(src, dst, num_nodes=NODES, edge_data=data)


def placed(graph: pgs.Graph, how: str) -> pgs.Graph:
    return graph.pin() if how == "pinned" else graph.to("cuda")


def arrays(graph: Any) -> list[Any]:
    return [part and part.cpu().tolist() for part in graph._source._open()]


@pytest.mark.parametrize("how", ["copied", "pinned"])
def test_those_of_the_cpu(how: str) -> None:
    cpu = in_memory()
    there = placed(cpu, how)
    for about in FORMS:
        want, form = cpu._source._walked(**about), there._source._walked(**about)
        assert form._handle() == form._handle() > 0, about
        assert (form.device, form.pinned) == ("cuda:0", how == "pinned")
        assert arrays(form) == arrays(want), about
        assert form._kinds == want._kinds
        assert (form._back is None) is (want._back is None)
        if form._back is not None:
            assert form._back._device == 0
            assert arrays(form._back) == arrays(want._back), about
        assert there._source._walked(**about) is form


def test_what_both_have_is_there_once() -> None:
    there = in_memory().to("cuda")
    out, drawn = there._source._walked("out"), there._source._walked("out", "p")
    second = there._source._walked("out", second=True)
    split = there._source._walked("out", types="t", second=True)
    for form in (drawn, second):
        form._handle()
        assert all(
            a is b for a, b in zip(form._source._open()[:3], out._source._open(), strict=False)
        )
    split._handle()
    assert split._back is second._back
    assert there._source._walked("out", "p", second=True)._back is second._back
    both = in_memory(symmetric=True).to("cuda")
    assert both._source._walked("out", second=True)._back is both._source._walked("out")
    # A graph whose rows ascend is what is behind its out-edges.
    ascending = pgs.Graph.from_csc(
        in_memory()._source._walked("out").indptr, in_memory()._source._walked("out").indices
    )
    there = ascending.to("cuda")
    back = there._source._walked("out", second=True)._back
    assert back is not None and back._handle() > 0
    assert back._source._open() == there._source._open()


@pytest.mark.parametrize("how", ["copied", "pinned"])
def test_closing_the_graph_closes_its_forms(how: str) -> None:
    there = placed(in_memory(), how)
    forms = [there._source._walked(**about) for about in FORMS]
    assert all(form._handle() for form in forms)
    there.close()
    for form in forms:
        with pytest.raises(pgs.errors.ClosedError):
            form._handle()


@pytest.mark.parametrize("how", ["copied", "pinned"])
def test_after_the_graph_on_the_cpu_was_closed(how: str) -> None:
    cpu = in_memory()
    there = placed(cpu, how)
    forms = [there._source._walked(**about) for about in FORMS]
    want = [arrays(cpu._source._walked(**about)) for about in FORMS]
    assert all(form._handle() for form in forms)
    cpu.close()
    assert [arrays(form) for form in forms] == want
    # Forms that are created from now on have the arrays of the device.
    split = there._source._walked("out", types="t")
    assert arrays(split._on_cpu())[:3] == want[FORMS.index(dict(FORMS[-2], prob=None))][:3]


def test_forms_are_not_pickled() -> None:
    there = in_memory().to("cuda")
    with pytest.raises(TypeError, match="got data derived from it"):
        pickle.dumps(there._source._walked("out"))
    again = pickle.loads(pickle.dumps(there))
    assert arrays(again._source._walked("out")) == arrays(there._source._walked("out"))


@pytest.mark.parametrize("how", ["copied", "pinned"])
def test_a_damaged_file(tmp_path: Path, how: str) -> None:
    path = tmp_path / "graph"
    in_memory().save(path, out_edges=True)
    there = placed(pgs.Graph.open(path), how)
    out = there._source._walked("out")
    assert out._handle() > 0
    assert arrays(out) == arrays(in_memory()._source._walked("out"))
    pages = pgs.Graph.open(path)._source._file
    assert pages is not None
    about = {one["name"]: one for one in pages.header["sections"]}["out_edges"]
    data = bytearray(path.read_bytes())
    words = np.frombuffer(data, "int64", about["bytes"] // 8, about["offset"])
    words[words[6] // 8 + 7] = NODES
    path.write_bytes(data)
    for prob in (None, "p", "z"):
        opened = placed(pgs.Graph.open(path), how)
        with pytest.raises(ValueError, match=r"indices\[\d\]: expected an id in \[0, 60\), got 60"):
            opened._source._walked("out", prob)._handle()
        # The CPU, which makes what is behind it, may meet that vertex before.
        with pytest.raises(
            (pgs.Error, ValueError), match=r"are damaged|expected an id in \[0, 60\)"
        ):
            opened._source._walked("out", prob, second=True)._handle()
