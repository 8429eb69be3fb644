"""``Relation._with_arrays``: the graph that programs read, with arrays of edges and vertices."""

import gc
import os
import weakref

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler._graph import program_arrays


@pytest.fixture
def graph() -> pgs.Graph:
    return pgs.Graph.from_csc(
        [0, 2, 3, 3],
        [1, 2, 0],
        edge_data={"w": np.ones(3, "f4"), "x": [5, 6, 7], "rows": np.ones((3, 2))},
        node_data={"p": np.arange(3.0), "h": np.ones(3, "f2")},
    )


def test_one_form_a_set_of_names(graph: pgs.Graph) -> None:
    relation = graph._source
    form = relation._with_arrays(["x", "w", "x"], ["p"])
    again, other = (relation._with_arrays(names, ["p"]) for names in (["w", "x"], ["w"]))
    assert form is again is not other
    assert relation._with_arrays([], []) is relation
    assert form.indices._address == graph.indices._address
    assert form.edata is graph.edata


def test_sampling_is_the_same(graph: pgs.Graph) -> None:
    sampler = pgs.PGSampler([2, 2], seed=1)
    form = graph._source._with_arrays(["w"], ["p", "h"], "x")
    ours, theirs = (
        sampler.sample(each, [0, 1], batch=0) for each in (pgs.Graph._wrap(form), graph)
    )
    assert ours.input_nodes.tolist() == theirs.input_nodes.tolist()


def test_names_without_an_array(graph: pgs.Graph) -> None:
    have = r"one of \('w', 'x', 'rows'\), got 'y'"
    with pytest.raises(ValueError, match=f"^weight: expected an edge array of the graph, {have}$"):
        graph._source._with_arrays([], [], "y")
    with pytest.raises(ValueError, match=f"^edata: expected an edge array of the graph, {have}$"):
        graph._source._with_arrays(["y"], [])
    with pytest.raises(ValueError, match=r"^ndata: expected a node array .*'p', 'h'\), got 'w'$"):
        graph._source._with_arrays([], ["w"])
    with pytest.raises(ValueError, match=r"^weight: expected a value for each edge.*\(3, 2\)$"):
        graph._source._with_arrays([], [], "rows")
    bare = pgs.Graph.from_csc([0, 1], [0])
    with pytest.raises(ValueError, match="of the graph, which has none, got 'w'"):
        bare._source._with_arrays([], [], "w")


def test_ids_beyond_the_array() -> None:
    graph = pgs.Graph.from_csc(
        [0, 2, 2], [1, 1], edge_ids=[0, 7], edge_data={"w": np.ones(3), "all": np.ones(8)}
    )
    graph._source._with_arrays(["all"], [])
    with pytest.raises(ValueError, match=r"got 3 of them and an edge with id 7"):
        graph._source._with_arrays(["w"], [])


def test_closed_with_its_graph(graph: pgs.Graph) -> None:
    values = np.ones(3)
    form = graph.with_data({"new": values})._source._with_arrays(["new"], [])
    gone = weakref.ref(form)
    del form
    gc.collect()
    assert gone() is None
    form = graph._source._with_arrays(["w"], [])
    graph.close()
    with pytest.raises(pgs.errors.ClosedError):
        form._handle()
    assert form._source._lent is program_arrays.NONE_LENT


def test_after_a_fork(graph: pgs.Graph) -> None:
    form = graph._source._with_arrays(["w"], ["p"])
    child = os.fork()
    if child == 0:
        ok = pgs.PGSampler([2], seed=1).sample(pgs.Graph._wrap(form), [0], batch=0).num_edges == 2
        os._exit(0 if ok and form is graph._source._with_arrays(["w"], ["p"]) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_where_torch_has_moved_an_array() -> None:
    torch = pytest.importorskip("torch")
    weights = torch.ones(3)
    graph = pgs.Graph.from_csc([0, 2, 3, 3], [1, 2, 0], edge_data={"w": weights})
    form = graph._source._with_arrays(["w"], [])
    before = form._handle()
    assert form._handle() == before
    weights.share_memory_()
    weights.fill_(2)
    assert form._handle() != before
    assert form._source._lent.edges["w"].tolist() == [2.0] * 3
