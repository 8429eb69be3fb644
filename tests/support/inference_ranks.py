"""The work of each process of a group in the tests of ``inference`` by several processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "inference"))

import torch
from inference_cases import (
    NODES,
    WIDTH,
    PairConv,
    SAGEConv,
    random_edges,
    random_graph,
    random_rows,
)

import pygsampler as pgs


def run(*arguments: Any, **options: Any) -> Any:
    return pgs.inference(*arguments, progress=False, **options)


def layers() -> list[Any]:
    torch.manual_seed(0)
    return [SAGEConv(WIDTH, 8), torch.relu, PairConv(8, 6), torch.relu, SAGEConv(6, 3)]


def mean_and_max(block: Any, x_src: Any, x_dst: Any) -> Any:
    return torch.cat([x_dst, block.mean(x_src), block.max(x_src)], dim=1)


def same_rows(rank: int, world: int) -> None:
    graph, x = random_graph(), random_rows()
    # Means and maxima do not depend on the ranges of nodes, so the rows are equal to the bit.
    whole = run([mean_and_max, mean_and_max], graph, x)
    for options in ({}, {"batch_size": 7}, {"batch_size": NODES}, {"memory": 5000}):
        assert torch.equal(run([mean_and_max] * 2, graph, x, group=True, **options), whole)
        torch.testing.assert_close(
            run(layers(), graph, x, group=True, **options), run(layers(), graph, x)
        )
    counts: list[tuple[int, int]] = []
    pgs.inference(layers(), graph, x, group=True, progress=lambda *now: counts.append(now))
    assert counts[-1] == (3 * NODES, 3 * NODES)
    few = pgs.Graph.from_coo([0], [0], num_nodes=world - 1)
    rows = torch.arange(world - 1.0)[:, None]
    assert torch.equal(run([mean_and_max], few, rows, group=True), run([mean_and_max], few, rows))
    empty = pgs.Graph.from_coo([], [], num_nodes=0)
    assert run([mean_and_max], empty, torch.empty(0, 2), group=True).shape == (0, 6)
    out = torch.empty_like(whole)
    own = {"out": out} if rank == 0 else {}
    run([mean_and_max] * 2, graph, x, group=torch.distributed.group.WORLD, **own)
    assert rank or torch.equal(out, whole)


def same_rows_of_pyg(rank: int, world: int) -> None:
    from torch_geometric import nn

    graph, x = random_graph(), random_rows()
    for make in (nn.GraphSAGE, nn.GCN, nn.GAT, nn.PNA):
        torch.manual_seed(0)
        more = {}
        if make is nn.PNA:
            more = {"aggregators": ["mean"], "scalers": ["identity"], "deg": torch.tensor([1, 1])}
        model = make(WIDTH, 8, 2, 3, jk="cat", **more)
        expected = run(model, graph, x)
        torch.testing.assert_close(run(model, graph, x, group=True), expected)
        torch.testing.assert_close(run(model, graph, x, group=True, batch_size=11), expected)
    with torch.no_grad():
        torch.testing.assert_close(expected, model.eval()(x, random_edges()))


def resumed(rank: int, world: int, folder: str) -> None:
    graph, x = random_graph(), random_rows()
    mine = Path(folder) / f"layers{rank}"
    expected = run(layers(), graph, x, group=True)
    first = run(layers(), graph, x, group=True, resume=mine, batch_size=16)
    # One of the processes was stopped before it noted a layer.
    manifest = json.loads((mine / "manifest.json").read_text())
    assert len(manifest["layers"]) == 2
    if rank == 0:
        del manifest["layers"][1:]
        (mine / "manifest.json").write_text(json.dumps(manifest))
    again = run(layers(), graph, x, group=True, resume=mine, out=Path(folder) / f"{rank}.npy")
    import numpy as np

    assert torch.equal(torch.from_numpy(np.load(again)), first)
    torch.testing.assert_close(first, expected)


def failing_anywhere(rank: int, world: int, folder: str) -> None:
    graph, x, mine = random_graph(), random_rows(), Path(folder) / f"layers{rank}"
    run([mean_and_max] * 2, graph, x, group=True, resume=mine)
    if rank == 1:
        (mine / "layer0.bin").write_bytes(b"")

    def tell(done: int, total: int) -> None:
        if done == 2 * NODES:
            raise ZeroDivisionError("a fault of one process")

    few = pgs.Graph.from_coo([0], [0], num_nodes=world - 1)
    rows = torch.ones(world - 1, WIDTH)
    faulty: list[tuple[Any, Any, dict[str, Any], str]] = [
        (graph, x, {"out": "no folder/rows.npy"}, "out: expected a file name"),
        (graph, x, {"features": x[:5]}, "features: expected a row for each"),
        (graph, x, {"resume": mine}, "layer0.bin of"),
        (graph, x, {"progress": tell}, "a fault of one process"),
        (few, rows, {"out": torch.empty(world - 1, 2)}, "out: expected shape"),
    ]
    for of, features, options, text in faulty:
        options = {"features": features, "progress": False, **(options if rank == 1 else {})}
        if text.startswith("layer0"):
            options["resume"] = mine
        try:
            pgs.inference([mean_and_max] * 2, of, group=True, **options)
        except Exception as error:
            assert text in str(error), error
            ours = "process 1 of the group failed" not in str(error)
            assert ours == (rank == 1), error
        else:
            raise AssertionError(f"expected an error: {text}")


def differing(rank: int, world: int) -> None:
    graph, x = random_graph(), random_rows()
    other = rank == 1
    for layers, features, options in (
        ([mean_and_max] * (1 + other), x, {}),
        ([mean_and_max, torch.nn.Linear(3 * WIDTH, 4 + other)], x, {}),
        ([mean_and_max], x.double() if other else x, {}),
        ([mean_and_max], x, {"out": x.new_empty(NODES, 3 * WIDTH).half()} if other else {}),
    ):
        try:
            run(layers, graph, features, group=True, **options)
        except ValueError as error:
            assert "expected the same arguments in all processes" in str(error)
        else:
            raise AssertionError("expected an error")
    same = run([mean_and_max], graph, x, group=True)
    assert torch.equal(same, run([mean_and_max], graph, x))


def failing(rank: int, world: int) -> None:
    def layer(block: Any, x: Any) -> Any:
        if rank == 1:
            raise ZeroDivisionError("a fault of one process")
        return x[: block.num_dst_nodes]

    try:
        run([layer], random_graph(), random_rows(), group=True)
    except ZeroDivisionError:
        assert rank == 1
    except RuntimeError as error:
        assert rank != 1
        assert "process 1 of the group failed: ZeroDivisionError: a fault" in str(error)
    else:
        raise AssertionError("expected an error")
    # The group is as it was.
    same = run([mean_and_max], random_graph(), random_rows(), group=True)
    assert torch.equal(same, run([mean_and_max], random_graph(), random_rows()))
