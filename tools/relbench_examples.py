#!/usr/bin/env python3
"""RelBench's example scripts with PyG's loader and with ours: batches, losses and times.

    git clone https://github.com/snap-stanford/relbench
    pip install pytorch-frame scikit-learn duckdb pooch pandas pyarrow tqdm
    python tools/relbench_examples.py relbench

The scripts are those of the checkout, run as they are and with one import changed:
``from pygsampler.pyg import NeighborLoader`` in place of ``from torch_geometric.loader import
NeighborLoader``, and ``NeighborSampler`` likewise for RelBench's own loader of links, in
``relbench/modeling/loader.py``. Databases are generated with the schemas of rel-f1 and rel-hm, and
text is embedded by hashes of its words, so that nothing is downloaded. A third run has a loader
that makes each batch with both and compares them: with fanouts above all degrees their nodes, edges
and rows of tables, with the script's own fanouts the numbers of nodes and edges of each hop.

PyG's loader samples by time with pyg-lib alone; without it only ours runs. Times are processor time
of a process with one thread: of a step with its model, and of the loader without one.

Status 0 where all scripts ran and batches are alike, 1 where one failed or some differ.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import itertools
import json
import os
import re
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
import types
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve()
PYG_IMPORT = "from torch_geometric.loader import NeighborLoader"
OUR_IMPORT = "from pygsampler.pyg import NeighborLoader"
LOSS = re.compile(r"Train loss: ([^,]+), Val metrics: (.*)")


class Example(NamedTuple):
    """A script of RelBench's, and the options that it is run with."""

    script: str
    dataset: str
    task: str
    options: str
    # The metric of its validation that is shown.
    metric: str


EXAMPLES = {
    "entity, classification": Example("gnn_entity.py", "rel-f1", "driver-dnf", "", "roc_auc"),
    "entity, regression": Example("gnn_entity.py", "rel-f1", "driver-position", "", "mae"),
    "entity, latest neighbors": Example(
        "gnn_entity.py", "rel-hm", "user-churn", "--temporal_strategy last", "roc_auc"
    ),
    "links": Example(
        "gnn_recommendation.py", "rel-hm", "user-item-purchase", "", "link_prediction_map"
    ),
    "links, identity-aware": Example(
        "idgnn_recommendation.py", "rel-hm", "user-item-purchase", "", "link_prediction_map"
    ),
}


# The databases.


def f1_database(scale: float, random: Any) -> Any:
    """Returns a database with rel-f1's tables; drivers and constructors have their skill."""
    import numpy as np
    import pandas as pd
    from relbench.base import Database, Table

    races, drivers, teams, starters = int(1000 * scale), int(500 * scale), 60, 20
    start = pd.Timestamp("1950-05-13")
    # Until 2016: tasks ask for years after their last timestamp.
    date = start + pd.to_timedelta(np.sort(random.integers(0, 24_000, races)), unit="D")
    date = pd.Series(date).astype("datetime64[ns]")
    skill, reliable = random.normal(size=drivers), random.uniform(0.5, 0.95, teams)
    # A driver starts in a window of the races.
    windows = np.argsort(np.linspace(0, 1, drivers) + random.normal(0, 0.03, drivers))
    who = np.concatenate(
        [
            windows[place + random.choice(60, starters, replace=False)]
            for place in np.linspace(0, drivers - 60, races).astype(int)
        ]
    )
    race = np.repeat(np.arange(races), starters)
    team = (who * 7 + race // 400) % teams
    finished = random.random(len(who)) < reliable[team]
    pace = skill[who] + 3 * finished + random.normal(0, 0.7, len(who))
    order = (-pace.reshape(races, starters)).argsort(1).argsort(1).ravel() + 1
    grid = (-(skill[who] + random.normal(0, 0.5, len(who)))).reshape(races, starters)
    grid = grid.argsort(1).argsort(1).ravel() + 1
    points = np.maximum(11 - order, 0).astype(float)
    each = pd.Series(np.arange(len(who)))
    day = date.iloc[race].reset_index(drop=True)
    first, second = {"raceId": "races", "driverId": "drivers"}, {"constructorId": "constructors"}
    of_team = {"raceId": "races", **second}
    results = {
        **{"resultId": each, "raceId": race, "driverId": who, "constructorId": team},
        **{"number": random.integers(1, 99, len(who)), "grid": grid, "positionOrder": order},
        **{"position": np.where(finished, order, np.nan), "points": points},
        **{"laps": random.integers(20, 80, len(who)), "statusId": np.where(finished, 1, 4)},
        **{"milliseconds": random.normal(6e6, 5e5, len(who)), "date": day},
    }
    standings = {
        **{"driverStandingsId": each, "raceId": race, "driverId": who},
        **{"points": points, "position": order, "wins": (order == 1).astype(int), "date": day},
    }
    qualifying = {
        **{"qualifyId": each, "raceId": race, "driverId": who, "constructorId": team},
        **{"number": random.integers(1, 99, len(who)), "position": grid},
        "date": day - pd.Timedelta(days=1),
    }
    by_team = pd.DataFrame({"raceId": race, "constructorId": team, "points": points})
    by_team = by_team.groupby(["raceId", "constructorId"], as_index=False).points.sum()
    by_team["date"] = date.iloc[by_team.raceId].to_numpy()
    tables = {
        "races": (
            {
                **{
                    "raceId": np.arange(races),
                    "year": date.dt.year,
                    "round": race[:races] % 16 + 1,
                },
                **{"circuitId": random.integers(0, 40, races), "date": date},
                **{"name": [f"Grand Prix of {place % 40}" for place in range(races)]},
            },
            ("raceId", {"circuitId": "circuits"}, "date"),
        ),
        "circuits": (
            {
                **{"circuitId": np.arange(40), "name": [f"Circuit {i}" for i in range(40)]},
                **{"country": [f"country {i % 12}" for i in range(40)]},
                **{"lat": random.uniform(-60, 60, 40), "lng": random.uniform(-180, 180, 40)},
            },
            ("circuitId", {}, None),
        ),
        "drivers": (
            {
                "driverId": np.arange(drivers),
                "surname": [f"driver {i} of {i % 9}" for i in range(drivers)],
                "nationality": [f"country {i % 15}" for i in range(drivers)],
                "dob": start + pd.to_timedelta(random.integers(-9000, 9000, drivers), unit="D"),
            },
            ("driverId", {}, None),
        ),
        "constructors": (
            {
                **{"constructorId": np.arange(teams), "name": [f"team {i}" for i in range(teams)]},
                "nationality": [f"country {i % 8}" for i in range(teams)],
            },
            ("constructorId", {}, None),
        ),
        "results": (results, ("resultId", first | second, "date")),
        "standings": (standings, ("driverStandingsId", first, "date")),
        "qualifying": (qualifying, ("qualifyId", first | second, "date")),
        "constructor_results": (
            {"constructorResultsId": np.arange(len(by_team)), **by_team},
            ("constructorResultsId", of_team, "date"),
        ),
        "constructor_standings": (
            {"constructorStandingsId": np.arange(len(by_team)), **by_team},
            ("constructorStandingsId", of_team, "date"),
        ),
    }
    return Database(
        {
            name: Table(pd.DataFrame(columns), links, key, when)
            for name, (columns, (key, links, when)) in tables.items()
        }
    )


def hm_database(scale: float, random: Any) -> Any:
    """Returns a database with rel-hm's tables; customers have kinds of articles that they buy."""
    import numpy as np
    import pandas as pd
    from relbench.base import Database, Table

    customers, articles, sales = int(2000 * scale), int(500 * scale), int(30_000 * scale)
    kinds = 20
    liked, kind = random.integers(0, kinds, customers), np.arange(articles) % kinds
    active = random.gamma(0.5, 1, customers)
    who = random.choice(customers, sales, p=active / active.sum())
    same = random.integers(0, articles // kinds, sales) * kinds + liked[who]
    what = np.where(random.random(sales) < 0.8, same, random.integers(0, articles, sales))
    # Two weeks more than the tasks' test timestamp.
    day = pd.Timestamp("2019-09-07") + pd.to_timedelta(
        np.sort(random.integers(0, 387, sales)), unit="D"
    )
    price = random.lognormal(-4, 0.5, articles)
    tables = {
        "article": (
            {
                **{"article_id": np.arange(articles), "product_code": np.arange(articles) // 3},
                "prod_name": [f"product {place} of {place % 90}" for place in range(articles)],
                "product_type_name": [f"type {of}" for of in kind],
                "colour_group_name": [f"colour {place % 11}" for place in range(articles)],
                "detail_desc": [
                    " ".join(f"word{(place * step) % 97}" for step in range(1, 9))
                    for place in range(articles)
                ],
            },
            ("article_id", {}, None),
        ),
        "customer": (
            {
                "customer_id": np.arange(customers),
                "FN": np.where(random.random(customers) < 0.4, 1.0, np.nan),
                "club_member_status": random.choice(["ACTIVE", "PRE-CREATE"], customers),
                "age": random.integers(16, 80, customers).astype(float),
            },
            ("customer_id", {}, None),
        ),
        "transactions": (
            {
                **{"t_dat": pd.Series(day).astype("datetime64[ns]"), "customer_id": who},
                **{"article_id": what, "price": price[what] * random.uniform(0.7, 1, sales)},
                "sales_channel_id": random.integers(1, 3, sales),
            },
            (None, {"customer_id": "customer", "article_id": "article"}, "t_dat"),
        ),
    }
    return Database(
        {
            name: Table(pd.DataFrame(columns), links, key, when)
            for name, (columns, (key, links, when)) in tables.items()
        }
    )


DATABASES = {"rel-f1": f1_database, "rel-hm": hm_database}


def write_databases(folder: Path, scale: float) -> None:
    """Writes the databases where RelBench looks for those that it has downloaded."""
    import numpy as np

    for place, (name, make) in enumerate(DATABASES.items()):
        database = make(scale, np.random.default_rng(place))
        database.reindex_pkeys_and_fkeys()
        (folder / name / "db").mkdir(parents=True)
        database.save(folder / name / "db")
        rows = {table: len(value.df) for table, value in database.table_dict.items()}
        print(name, rows, flush=True)


# A script in a process of its own.


def add_stand_ins(checkout: Path) -> None:
    """Makes RelBench importable from a checkout, without models of text."""
    sys.path[:0] = [str(checkout / "examples"), str(checkout)]
    embedder: Any = types.ModuleType("sentence_transformers")
    embedder.SentenceTransformer = HashedText
    sys.modules["sentence_transformers"] = embedder
    if importlib.util.find_spec("datasets") is None:
        # Hugging Face's, for databases that are not these.
        sources: Any = types.ModuleType("datasets")
        sources.load_dataset, sources.exceptions = None, types.ModuleType("datasets.exceptions")
        sources.exceptions.DatasetNotFoundError = OSError
        sys.modules.update({"datasets": sources, "datasets.exceptions": sources.exceptions})


def mend_relbench() -> None:
    """Takes downloads out of RelBench, and makes its times seconds with pandas 3."""
    import relbench.datasets
    import relbench.modeling.graph
    import relbench.tasks

    # Scripts of links have download=True in them.
    relbench.datasets.download_dataset = lambda name: None
    relbench.tasks.download_task = lambda name, task: None
    # RelBench divides the integers of dates by 10**9, as if they were nanoseconds; in pandas 3 they
    # may be seconds or microseconds, so that seeds would have other times than rows.
    seconds = relbench.modeling.utils.to_unix_time

    def to_unix_time(values: Any) -> Any:
        return seconds(values.astype("datetime64[ns]"))

    relbench.modeling.graph.to_unix_time = to_unix_time


class HashedText:
    """Embeds a text by the hashes of its words, under the name of a downloaded model."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def encode(self, texts: list[str], convert_to_tensor: bool = True) -> Any:
        import torch

        values = torch.zeros(len(texts), 32)
        for row, text in zip(values, texts, strict=True):
            for word in text.split():
                row[zlib.crc32(word.encode()) % 32] += 1
        return values


class Loops:
    """Stands in for tqdm: measures the loops of a script."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, float]] = []

    def __call__(self, loader: Any, total: int | None = None) -> Iterator[Any]:
        start, count = time.process_time(), 0
        try:
            for batch in loader:
                count += 1
                yield batch
        finally:
            # Loops of training are those with a total.
            if total is not None:
                self.steps.append((count, time.process_time() - start))


def run_script(checkout: Path, name: str, whose: str, options: list[str]) -> dict[str, Any]:
    """Runs a script with one loader, or with both; returns its losses, times and differences."""
    import torch

    torch.set_num_threads(1)
    mend_relbench()
    import relbench.modeling.loader
    import tqdm

    # Before PyG's names are others.
    import pygsampler.pyg

    loops: Any = Loops()
    tqdm.tqdm = loops
    example = EXAMPLES[name]
    source = (checkout / "examples" / example.script).read_text()
    if source.count(PYG_IMPORT) != 1:
        raise SystemExit(f"{example.script}: expected one {PYG_IMPORT!r}")
    compared = Comparison()
    if whose == "ours":
        source = source.replace(PYG_IMPORT, OUR_IMPORT)
        relbench.modeling.loader.NeighborSampler = pygsampler.pyg.NeighborSampler
    elif whose == "both":
        import torch_geometric.loader

        torch_geometric.loader.NeighborLoader = compared.loader
        relbench.modeling.loader.NeighborSampler = compared.sampler
    given = ["--dataset", example.dataset, "--task", example.task, *example.options.split()]
    if '"--download"' in source:
        given.append("--no-download")
    sys.argv = [example.script, *given, *options]
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
        script = Path(folder, example.script)
        script.write_text(source)
        after = runpy.run_path(str(script), run_name="__main__")
    found = LOSS.findall(printed.getvalue())
    losses = [float(loss) for loss, _ in found]
    metric = re.compile(rf"'{example.metric}': (?:np\.float64\()?([-\d.e]+)")
    metrics = [float(value) for _, text in found for value in metric.findall(text)]
    steps, seconds = map(sum, zip(*loops.steps, strict=True))
    loader = after["loader_dict"]["train"] if "loader_dict" in after else after["train_loader"]
    begun = time.process_time()
    batches = sum(1 for _ in itertools.islice(loader, 20))
    alone = (time.process_time() - begun) / max(batches, 1)
    return {
        **{"losses": losses, "metrics": metrics, "step": seconds / steps, "loader": alone},
        **{"differences": compared.differences, "counts": compared.counts},
    }


class Comparison:
    """Compares batches of PyG's loader and ours, or of both samplers, as a script asks for them."""

    def __init__(self) -> None:
        # The number of batches by the first part that differs; "" counts equal batches.
        self.differences: dict[str, int] = {}
        # Nodes of each hop and edges of each hop of all batches, by PyG's and by ours.
        self.counts: list[dict[str, int]] = [{}, {}]

    def loader(self, data: Any, **options: Any) -> Any:
        """Returns a loader that yields our batches, after a comparison with PyG's."""
        from torch_geometric.loader import neighbor_loader

        import pygsampler.pyg

        options["shuffle"] = False
        loaders = [
            module.NeighborLoader(data, **options) for module in (neighbor_loader, pygsampler.pyg)
        ]
        return _Batches(self, *loaders)

    def sampler(self, data: Any, **options: Any) -> Any:
        """Returns a sampler with our samples, after a comparison with PyG's."""
        from torch_geometric.sampler import neighbor_sampler

        import pygsampler.pyg

        theirs = neighbor_sampler.NeighborSampler(data, **options)
        add = self.add

        class Sampler(pygsampler.pyg.NeighborSampler):
            def sample_from_nodes(self, index: Any, **more: Any) -> Any:
                ours = super().sample_from_nodes(index, **more)
                asked = theirs.sample_from_nodes(index), theirs.edge_permutation
                add(sample_facts(*asked)[0], sample_facts(ours, self.edge_permutation)[0])
                return ours

        return Sampler(data, **options)

    def add(self, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
        """Compares two batches of the same seeds."""
        difference = first_difference(theirs, ours)
        self.differences[difference] = self.differences.get(difference, 0) + 1
        for counts, facts in zip(self.counts, (theirs, ours), strict=True):
            for name, rows in facts.items():
                what = name.partition(" ")[0]
                if what in ("nodes", "edges"):
                    hops, sizes = rows[:, 0].unique(return_counts=True)
                    for hop, size in zip(hops.tolist(), sizes.tolist(), strict=True):
                        counts[f"{what} {hop}"] = counts.get(f"{what} {hop}", 0) + size


class _Batches:
    def __init__(self, comparison: Comparison, theirs: Any, ours: Any) -> None:
        self.comparison, self.theirs, self.ours = comparison, theirs, ours

    def __len__(self) -> int:
        return len(self.ours)

    def __iter__(self) -> Iterator[Any]:
        for theirs, ours in zip(self.theirs, self.ours, strict=True):
            self.comparison.add(batch_facts(theirs), batch_facts(ours))
            yield ours


def sample_facts(out: Any, permutation: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns nodes and edges of a sample as sets, and the order of its nodes in them.

    The permutation has the place of each of a sampler's edges among those of its data.
    """
    facts, order = {}, {}
    node_sizes, edge_sizes = out.num_sampled_nodes or {}, out.num_sampled_edges or {}
    for kind, nodes in out.node.items():
        hops = hop_of(node_sizes.get(kind), len(nodes))
        order[kind], facts[f"nodes {kind}"] = in_order(hops, out.batch[kind], nodes)
    for kind, rows in out.row.items():
        if not len(rows):
            continue
        cols, ids = out.col[kind], (out.edge or {}).get(kind)
        if ids is None:
            ids = rows * 0
        elif (permutation or {}).get(kind) is not None:
            ids = permutation[kind][ids]
        hops, tree = hop_of(edge_sizes.get(kind), len(rows)), out.batch[kind[2]][cols]
        ends = out.node[kind[0]][rows], out.node[kind[2]][cols]
        facts[f"edges {kind}"] = in_order(hops, tree, *ends, ids)[1]
    return facts, order


def batch_facts(batch: Any) -> dict[str, Any]:
    """Returns what a batch has as sets, and with the rows of its tables in their order."""
    edges = {kind: batch[kind] for kind in batch.edge_types if "edge_index" in batch[kind]}
    facts, order = sample_facts(
        types.SimpleNamespace(
            node={kind: batch[kind].n_id for kind in batch.node_types},
            batch={kind: batch[kind].batch for kind in batch.node_types},
            row={kind: store.edge_index[0] for kind, store in edges.items()},
            col={kind: store.edge_index[1] for kind, store in edges.items()},
            edge={kind: store.get("e_id") for kind, store in edges.items()},
            num_sampled_nodes={
                kind: batch[kind].get("num_sampled_nodes") for kind in batch.node_types
            },
            num_sampled_edges={
                kind: store.get("num_sampled_edges") for kind, store in edges.items()
            },
        )
    )
    for kind, store in zip(batch.node_types, batch.node_stores, strict=True):
        facts[f"names {kind}"] = sorted(store.keys())
        for name in ("time", "tf"):
            if name in store:
                facts[f"{name} {kind}"] = store[name][order[kind]]
        for name in ("input_id", "seed_time", "y", "batch_size"):
            if name in store:
                facts[f"{name} {kind}"] = store[name]
    return facts


def hop_of(sizes: Any, count: int) -> Any:
    """Returns the hop of each of so many nodes or edges; 0 where the sizes of hops are unknown."""
    import torch

    if sizes is None:
        return torch.zeros(count, dtype=torch.int64)
    hops = torch.repeat_interleave(torch.as_tensor(sizes))
    if len(hops) != count:
        raise ValueError(f"hops: expected {count} in all, got {sizes}")
    return hops


def in_order(*columns: Any) -> tuple[Any, Any]:
    """Returns the order of rows by the columns, the first one first, and the rows in it."""
    import numpy as np
    import torch

    order = torch.from_numpy(np.lexsort([column.numpy() for column in reversed(columns)]))
    return order, torch.stack([column[order].long() for column in columns], 1)


def first_difference(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """Returns the name of a fact that batches differ in beyond the order of nodes and edges."""
    import torch

    for name in [*theirs, *ours]:
        if name not in theirs or name not in ours:
            return name
        one, other = theirs[name], ours[name]
        if not (torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other):
            return name
    return ""


# All scripts, and the report.


def in_a_child(checkout: Path, folder: Path, name: str, loader: str, options: list[str]) -> Any:
    """Returns what ``run_script`` returns in a process of its own, or None where that fails."""
    import pygsampler

    paths = [str(Path(pygsampler.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        **{"PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"},
        **{"RELBENCH_CACHE_DIR": str(folder), "HOME": str(folder)},
    }
    given = [*options, "--cache_dir", str(folder / "examples")]
    command = [sys.executable, str(HERE), str(checkout), "--child", name, loader, *given]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{name}, {loader}: status {done.returncode}\n{done.stderr[-3000:]}")
        return None
    return json.loads(done.stdout.splitlines()[-1])


def mean_and_error(values: list[float]) -> str:
    """Returns a mean with its standard error."""
    if len(values) < 2:
        return f"{statistics.mean(values):.4f}"
    error = statistics.stdev(values) / len(values) ** 0.5
    return f"{statistics.mean(values):.4f} ± {error:.4f}"


def compare_batches(run: Any, names: list[str], sizes: list[str]) -> bool:
    """Prints how many batches are alike; False where one with all neighbors differs."""
    print("\n| script | fanouts | batches | alike | our nodes and edges of each hop / PyG's |")
    print("| --- | --- | --: | --: | --- |")
    good = True
    for name in names:
        for fanouts, options in (("all", ["--num_neighbors", "1000000"]), ("its own", sizes)):
            found = run(name, "both", [*options, "--epochs", "1", "--max_steps_per_epoch", "2"])
            if found is None:
                good = False
                continue
            (theirs, ours), differences = found["counts"], found["differences"]
            ratios = ", ".join(f"{ours.get(hop, 0) / theirs[hop]:.4f}" for hop in sorted(theirs))
            batches, alike = sum(differences.values()), differences.pop("", 0)
            print(f"| {name} | {fanouts} | {batches} | {alike} | {ratios} |", flush=True)
            if fanouts == "all" and not 0 < batches == alike:
                print(f"they differ first in {differences}")
                good = False
    return good


def compare_runs(
    run: Any, names: list[str], loaders: list[str], seeds: int, more: list[str]
) -> bool:
    """Prints losses and times of each script with each loader; False if one fails."""
    print("\n| script | loader | loss of each epoch | metric | ms a step | ms of the loader |")
    print("| --- | --- | --- | --- | --: | --: |")
    good = True
    for name in names:
        found: dict[str, list[Any]] = {loader: [] for loader in loaders}
        # In turns, since a machine's speed changes.
        for seed in range(seeds):
            for loader in loaders:
                found[loader].append(run(name, loader, ["--seed", str(seed), *more]))
        for loader, results in found.items():
            if None in results:
                good = False
                continue
            epochs = zip(*(result["losses"] for result in results), strict=True)
            losses = ", ".join(mean_and_error(list(losses)) for losses in epochs)
            metric = mean_and_error([result["metrics"][-1] for result in results])
            step, alone = (
                f"{1000 * statistics.median(result[name] for result in results):.1f}"
                for name in ("step", "loader")
            )
            print(f"| {name} | {loader} | {losses} | {metric} | {step} | {alone} |", flush=True)
    return good


def main(arguments: list[str] | None = None) -> int:
    """Runs the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="a folder with RelBench's source")
    parser.add_argument("--only", action="append", choices=EXAMPLES, help="these alone")
    parser.add_argument("--scale", type=float, default=1.0, help="of the databases (default: 1)")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each (default: 3)")
    parser.add_argument("--epochs", type=int, default=2, help="of each run (default: 2)")
    parser.add_argument("--steps", type=int, default=20, help="at most, an epoch (default: 20)")
    parser.add_argument("--batch-size", type=int, default=128, help="(default: 128)")
    parser.add_argument("--num-neighbors", type=int, default=32, help="of seeds (default: 32)")
    parser.add_argument("--child", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    checkout = options.checkout.resolve()
    if not (checkout / "examples" / "gnn_entity.py").is_file():
        raise SystemExit(
            f"{checkout}: expected a checkout of RelBench, with examples/gnn_entity.py"
        )
    add_stand_ins(checkout)
    if options.child:
        name, loader, *rest = options.child
        found = run_script(checkout, name, loader, rest)
        print(json.dumps(found))
        return 0
    names = options.only or list(EXAMPLES)
    common = ["--batch_size", str(options.batch_size), "--channels", "32"]
    sizes = ["--num_neighbors", str(options.num_neighbors)]
    training = ["--epochs", str(options.epochs), "--max_steps_per_epoch", str(options.steps)]
    with tempfile.TemporaryDirectory() as folder:
        write_databases(Path(folder), options.scale)

        def run(name: str, loader: str, more: list[str]) -> Any:
            return in_a_child(checkout, Path(folder), name, loader, [*common, *more])

        good, loaders = True, ["ours"]
        if importlib.util.find_spec("pyg_lib") is None:
            print("PyG's loader does not sample by time without pyg-lib: ours runs alone")
        else:
            good, loaders = compare_batches(run, names, sizes), ["pyg", "ours"]
        good &= compare_runs(run, names, loaders, options.seeds, [*sizes, *training])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
