"""tools/relbench_examples.py on a checkout that stands in for RelBench's, and how it compares."""

from __future__ import annotations

import copy
import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from partners import partner

CHECKOUT = {
    "relbench/__init__.py": "",
    "relbench/base.py": """
        import pickle
        from pathlib import Path


        class Table:
            def __init__(self, df, fkey_col_to_pkey_table, pkey_col=None, time_col=None):
                self.df, self.links = df, fkey_col_to_pkey_table
                self.key, self.time = pkey_col, time_col


        class Database:
            def __init__(self, table_dict):
                self.table_dict = table_dict

            def reindex_pkeys_and_fkeys(self):
                for table in self.table_dict.values():
                    for column, target in table.links.items():
                        assert table.df[column].between(0, len(self.table_dict[target].df)).all()

            def save(self, path):
                Path(path, "db").write_bytes(pickle.dumps(self))
    """,
    "relbench/datasets.py": "def download_dataset(name): raise OSError(name)",
    "relbench/tasks.py": "def download_task(name, task): raise OSError(name)",
    "relbench/modeling/__init__.py": "",
    "relbench/modeling/utils.py": """
        def to_unix_time(values):
            return values.astype("int64").to_numpy() // 10**9
    """,
    "relbench/modeling/graph.py": "from relbench.modeling.utils import to_unix_time",
    "relbench/modeling/loader.py": "from torch_geometric.sampler import NeighborSampler",
    "examples/gnn_entity.py": """
        import argparse
        import os
        import pickle
        from pathlib import Path

        import pandas
        import torch
        from sentence_transformers import SentenceTransformer
        from torch_geometric.data import HeteroData
        from torch_geometric.loader import NeighborLoader
        from tqdm import tqdm

        import relbench.datasets
        import relbench.tasks
        from relbench.modeling.graph import to_unix_time

        parser = argparse.ArgumentParser()
        for name in ("dataset", "task", "cache_dir"):
            parser.add_argument(f"--{name}")
        for name in ("batch_size", "channels", "num_neighbors", "epochs", "max_steps_per_epoch"):
            parser.add_argument(f"--{name}", type=int)
        parser.add_argument("--seed", type=int, default=42)
        args = parser.parse_args()
        relbench.datasets.download_dataset(args.dataset)
        relbench.tasks.download_task(args.dataset, args.task)
        path = Path(os.environ["RELBENCH_CACHE_DIR"], args.dataset, "db", "db")
        tables = pickle.loads(path.read_bytes()).table_dict
        results = tables["results"].df
        data = HeteroData()
        data["drivers"].num_nodes = len(tables["drivers"].df)
        data["results"].num_nodes = len(results)
        data["results"].time = torch.from_numpy(to_unix_time(results.date))
        rows = torch.arange(len(results))
        data["results", "f2p", "drivers"].edge_index = torch.stack(
            [rows, torch.from_numpy(results.driverId.to_numpy())]
        )
        # Seconds, whatever the unit of pandas' times is.
        last = pandas.Timestamp(results.date.max())
        assert int(data["results"].time.max()) == int(last.timestamp())
        seconds = pandas.Series(results.date.astype("datetime64[s]"))
        assert to_unix_time(seconds).tolist() == data["results"].time.tolist()
        assert SentenceTransformer("glove").encode(["a b", "b a", "c"]).sum(1).tolist() == [2, 2, 1]
        loader_dict = {
            "train": NeighborLoader(
                data, [args.num_neighbors], input_nodes="drivers", time_attr="time",
                input_time=torch.full((len(tables["drivers"].df),), 10**9),
                batch_size=args.batch_size,
            )
        }
        for epoch in range(args.epochs):
            seen = 0
            for step, batch in enumerate(tqdm(loader_dict["train"], total=5)):
                seen += len(batch["results"].n_id)
                if step == args.max_steps_per_epoch:
                    break
            whose = NeighborLoader.__module__.partition(".")[0]
            print(f"Epoch: {epoch:02d}, Train loss: {seen / 2}, Val metrics: "
                  f"{{'roc_auc': np.float64({args.seed + 0.25}), 'of': {whose!r}}}")
    """,
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    partner("torch_geometric")
    partner("pandas")
    for name, text in CHECKOUT.items():
        path = tmp_path / "relbench-checkout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return tmp_path / "relbench-checkout"


def load(root: Path) -> Any:
    path = root / "tools" / "relbench_examples.py"
    spec = importlib.util.spec_from_file_location("relbench_examples", path)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = tool
    spec.loader.exec_module(tool)
    return tool


def run(root: Path, checkout: Path, *options: str) -> subprocess.CompletedProcess[str]:
    import pygsampler

    path = [str(Path(pygsampler.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    tool = root / "tools" / "relbench_examples.py"
    return subprocess.run(
        [sys.executable, "-W", "ignore", str(tool), str(checkout), *options],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))},
        capture_output=True,
        text=True,
        check=False,
    )


def test_scripts_run_with_our_loader_by_one_import(root: Path, checkout: Path) -> None:
    few = ("--scale", "0.2", "--seeds", "2", "--epochs", "2", "--batch-size", "30")
    done = run(root, checkout, "--only", "entity, classification", *few, "--num-neighbors", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    row = next(line for line in done.stdout.splitlines() if "| ours |" in line)
    # Two results of each of 100 drivers, in four batches; the metric's mean over seeds 0 and 1.
    found = re.search(r"\| (\S+) ± 0.0000, (\S+) ± 0.0000 \| 0.7500 ± 0.5000 \|", row)
    assert found is not None, row
    assert found[1] == found[2]
    assert 50 < float(found[1]) <= 100


@pytest.mark.slow
def test_a_script_that_fails_is_shown(root: Path, checkout: Path) -> None:
    script = checkout / "examples" / "gnn_entity.py"
    script.write_text(script.read_text() + "\nraise RuntimeError('of the script')\n")
    done = run(root, checkout, "--only", "entity, classification", "--scale", "0.2", "--seeds", "1")
    assert done.returncode == 1
    assert "RuntimeError: of the script" in done.stdout


def test_what_is_no_checkout_is_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"expected a checkout of RelBench, with examples"):
        load(root).main([str(tmp_path)])


def test_batches_are_compared_as_sets_of_each_hop(root: Path) -> None:
    partner("torch_geometric")
    import torch
    from torch_geometric.data import HeteroData

    from pygsampler.pyg import NeighborLoader

    tool, random, data = load(root), torch.Generator().manual_seed(1), HeteroData()
    data["a"].num_nodes, data["b"].num_nodes = 20, 60
    data["b"].time = torch.arange(60) % 7
    for kind, sizes in ((("b", "to", "a"), (60, 20)), (("a", "of", "b"), (20, 60))):
        ends = [torch.randint(0, size, (150,), generator=random) for size in sizes]
        data[kind].edge_index = torch.stack(ends)
    seeds = {"input_nodes": "a", "input_time": torch.full((20,), 5), "time_attr": "time"}
    loader = NeighborLoader(data, [4, 4], batch_size=20, seed=1, **seeds)
    batch = next(iter(loader))

    def difference(other: Any) -> str:
        found: str = tool.first_difference(tool.batch_facts(batch), tool.batch_facts(other))
        return found

    assert difference(batch) == ""
    # The other order of the nodes of the last hop, with the edges that lead from them.
    other = copy.deepcopy(batch)
    count = other["b"].num_sampled_nodes[-1]
    order = torch.arange(len(other["b"].n_id))
    order[-count:] = order[-count:].flip(0)
    for name in ("n_id", "batch", "time"):
        other["b"][name] = other["b"][name][order]
    place = order.argsort()
    other["b", "to", "a"].edge_index[0] = place[other["b", "to", "a"].edge_index[0]]
    other["a", "of", "b"].edge_index[1] = place[other["a", "of", "b"].edge_index[1]]
    assert not torch.equal(other["b"].n_id, batch["b"].n_id)
    assert difference(other) == ""
    for store, name in (("b", "time"), ("a", "seed_time"), ("a", "input_id")):
        other = copy.deepcopy(batch)
        other[store][name][-1] += 1
        assert difference(other) == f"{name} {store}"
    other = copy.deepcopy(batch)
    other["b"].n_id[-1] = (other["b"].n_id[-1] + 1) % 60
    assert difference(other) == "nodes b"
    other = copy.deepcopy(batch)
    other["a", "of", "b"].e_id[0] += 1
    assert difference(other) == "edges ('a', 'of', 'b')"
