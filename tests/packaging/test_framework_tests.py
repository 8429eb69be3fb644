"""What tools/framework_tests.py counts, on checkouts of a few tests of ours."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

# Each test is named by what it is to be counted as.
PYG = {
    "test/loader/test_one.py": """
        import os

        import pytest
        import torch
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader, NeighborSampler
        from torch_geometric.testing import onlyNeighborSampler, withPackage
        from torch_geometric.typing import WITH_PYG_LIB

        data = Data(x=torch.arange(9), edge_index=torch.arange(9).expand(2, 9))

        def loaded(**options):
            return next(iter(NeighborLoader(data, [2], **options)))

        @onlyNeighborSampler
        def test_passed():
            assert WITH_PYG_LIB
            assert loaded().x.tolist() == [0]

        @withPackage("pyg_lib")
        @pytest.mark.parametrize("workers", [0, 1])
        def test_not_offered(workers):
            if workers:
                loaded(num_workers=1, filter_per_worker=True, transform=in_a_worker)
            NeighborLoader(data, {("a", "b", "c"): [1]})

        def in_a_worker(batch):
            NeighborLoader(data, {("a", "b", "c"): [1]})

        def test_failed():
            assert loaded().x.tolist() == [1]

        def test_not_offered_by_others():
            loaded()
            raise NotImplementedError("of the test")

        def test_differs():
            assert loaded().num_nodes == 2

        def test_differs_no_more():
            loaded()

        def test_not_run_skipped():
            pytest.skip("for a reason")
            loaded()

        def test_not_run_at_all():
            if not data:
                loaded()

        @pytest.mark.xfail
        def test_not_run_xfail():
            assert loaded() is None

        def test_not_counted():
            pass

        def test_passed_older():
            assert len(NeighborSampler(data.edge_index, [1])) == 9

        def test_failed_by_its_end():
            if "pygsampler" in NeighborLoader.__module__:
                os._exit(3)
        """,
    "test/loader/test_other.py": "raise SystemExit('it names none of our classes')",
    "test/distributed/test_far.py": "raise SystemExit('NeighborLoader is another one here')",
    "torch_geometric/__init__.py": "raise SystemExit('the package of the checkout')",
}
DGL = {
    "tests/backend/__init__.py": "name = 'backend'",
    "tests/python/pytorch/test_one.py": """
        import backend
        import dgl
        import pytest
        import torch

        g = dgl.graph(([0, 1, 2], [1, 2, 0]))

        def blocks_of(sampler):
            return sampler.sample_blocks(g, torch.tensor([1]))[2]

        @pytest.mark.parametrize("sampler", [dgl.dataloading.NeighborSampler([2])])
        def test_passed(sampler):
            assert backend.name == "backend"
            assert "pygsampler" in type(sampler).__module__
            assert len(blocks_of(sampler)) == 1

        def test_not_offered():
            none = torch.tensor([0])
            sampler = dgl.dataloading.LaborSampler([2])
            sampler.sample_blocks(dgl.graph(([0], [0])), {"a": none, "b": none})

        def test_peers():
            assert len(blocks_of(dgl.dataloading.NeighborSampler([2]))) == 7

        def test_failed():
            assert "pygsampler" not in type(dgl.dataloading.NeighborSampler([2])).__module__
        """,
    "python/dgl/__init__.py": "raise SystemExit('the package of the checkout')",
}
# The tests of one that is written for PyG, and gets to our classes by code of its own.
CUGRAPH = {
    "python/cugraph-pyg/cugraph_pyg/loader/__init__.py": "raise SystemExit('that of the checkout')",
    "python/cugraph-pyg/cugraph_pyg/tests/loader/test_loaders.py": """
        import torch
        from cugraph.datasets import karate
        from cugraph_pyg.data import FeatureStore, GraphStore
        from cugraph_pyg.loader import NeighborLoader

        KIND = "person", "knows", "person"

        def stores():
            edges, ends = GraphStore(), karate.get_edgelist()
            both = [torch.as_tensor(ends[end], device="cuda") for end in ("src", "dst")]
            index = torch.stack(both)
            edges.put_edge_index(index, KIND, "coo", False, (34, 34))
            features = FeatureStore()
            features["person", "feat", None] = torch.arange(34)
            features[KIND, "time", None] = torch.arange(index.shape[1])
            return features, edges

        def test_passed():
            loader = NeighborLoader(
                stores(), [3], input_nodes=torch.arange(9), input_time=torch.full((9,), 50),
                time_attr="time", temporal_comparison="strictly_increasing", batch_size=9,
            )
            (batch,) = loader
            assert "pygsampler" in NeighborLoader.__mro__[1].__module__
            assert (batch.feat == batch.n_id).all()
            assert batch.edge_time.min() > 50
            assert batch.num_sampled_nodes.shape == (2,)

        def test_not_run():
            assert stores()

        def test_failed():
            NeighborLoader(stores(), [-2])
        """,
}
GRAPHSTORM = {
    "python/graphstorm/__init__.py": """
        from autogluon.tabular import TabularPredictor  # empty, where it is not installed
        from dgl.dataloading import NeighborSampler

        class GSgnnNodeDataLoader(NeighborSampler):
            def __init__(self, mask):
                self.mask = mask
                super().__init__([2])
        """,
    "tests/unit-tests/test_dataloading.py": """
        import multiprocessing
        from graphstorm import GSgnnNodeDataLoader

        def in_a_process():
            import autogluon

        def test_passed():
            assert "pygsampler" in GSgnnNodeDataLoader.__base__.__module__
            assert GSgnnNodeDataLoader("m").mask == "m"
            child = multiprocessing.get_context("spawn").Process(target=in_a_process)
            child.start()
            child.join()
            assert child.exitcode == 0

        def test_not_run_without_loader():
            pass

        def test_failed():
            assert "pygsampler" not in GSgnnNodeDataLoader.__base__.__module__

        def test_nccl():
            assert False

        def test_Distillation():
            assert False
        """,
    "tests/unit-tests/test_other.py": "GSgnnNodeDataLoader = None\ndef test_it(): assert False",
}
KNOWN = """
[[pyg]]
test = "test/loader/test_one.py::test_differs*"
reason = "two nodes"

[[pyg]]
test = "*::test_differs_no_more"
reason = "long ago"
"""


def load(root: Path) -> Any:
    path = root / "tools" / "framework_tests.py"
    spec = importlib.util.spec_from_file_location("framework_tests", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(root: Path, folder: Path, files: dict[str, str]) -> tuple[int, str, list[Any]]:
    """Status, output and the result of each test of a checkout of these files."""
    checkout, known, out = folder / "checkout", folder / "known.toml", folder / "out.json"
    for name, text in files.items():
        path = checkout / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    known.write_text(KNOWN)
    command = [sys.executable, str(root / "tools" / "framework_tests.py"), str(checkout)]
    command += ["--known", str(known), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert out.exists(), done.stdout + done.stderr
    return done.returncode, done.stdout + done.stderr, json.loads(out.read_text())


def counted(results: list[Any]) -> dict[str, str]:
    return {each["test"].partition("::")[2]: each["kind"] for each in results}


def test_pyg_tests_are_counted(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
    status, printed, results = run(root, tmp_path, PYG)
    assert counted(results) == {
        "test_passed": "passed",
        "test_passed_older": "passed",
        "test_not_offered[0]": "not offered",
        "test_not_offered[1]": "not offered",
        # PyG's own class says nothing of it, since it wants pyg-lib.
        "test_failed": "failed",
        "test_not_offered_by_others": "failed",
        "test_differs": "differs",
        "test_differs_no_more": "passed",
        "test_not_run_skipped": "not run",
        "test_not_run_at_all": "not run",
        "test_not_run_xfail": "not run",
        "test_failed_by_its_end": "failed",
    }
    assert status == 1
    assert "| test/loader/test_one.py | 3 | 2 | 1 | 0 | 3 | 3 |" in printed
    assert "| all | 3 | 2 | 1 | 0 | 3 | 3 |" in printed
    assert "stale: *::test_differs_no_more" in printed
    assert printed.count("stale") == 1
    assert "status 3" in printed


def test_dgl_tests_are_counted_beside_dgls_own_class(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("dgl")
    status, printed, results = run(root, tmp_path, DGL)
    assert counted(results) == {
        "test_passed[sampler0]": "passed",
        "test_not_offered": "not offered",
        "test_peers": "peer's",
        "test_failed": "failed",
    }
    assert status == 1
    assert "1 x seed_nodes" in printed


@pytest.mark.slow
def test_graphstorm_tests_are_counted(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("dgl")
    status, _, results = run(root, tmp_path, GRAPHSTORM)
    assert counted(results) == {
        "test_passed": "passed",
        "test_not_run_without_loader": "not run",
        "test_failed": "failed",
    }
    assert status == 1


@pytest.mark.slow
def test_cugraphs_tests_are_counted_over_stores_that_stand_in(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
    status, printed, results = run(root, tmp_path, CUGRAPH)
    assert counted(results) == {
        "test_passed": "passed",
        "test_not_run": "not run",
        "test_failed": "failed",
    }
    assert status == 1
    assert "cugraph-pyg (not installed)" in printed


def test_what_is_no_checkout_is_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="expected a checkout of one of pyg, dgl, relbench"):
        load(root).main([str(tmp_path)])


def test_every_known_difference_has_a_reason(root: Path) -> None:
    tool = load(root)
    for peer in tool.PEERS:
        for known in tool.read_known(peer, root / "tools" / "framework_tests.toml"):
            assert "::" in known.test
            assert len(known.reason) > 20
