"""Stand-ins for what peers' tests need and cannot be installed; used by framework_plugin.py."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import types
from pathlib import Path
from typing import Any
from unittest import mock

# Modules that GraphStorm imports, and that its tests of loading do without.
STAND_INS = {
    "autogluon",
    "boto3",
    "botocore",
    "h5py",
    "ogb",
    "psutil",
    "sagemaker",
    "scipy",
    "sklearn",
    "torchdata",
    "transformers",
}


def stand_in_dgl(_: str) -> None:
    """A generated graph in the place of the data set that DGL's tests of subgraphs download."""
    import dgl
    import torch

    class CoraFullDataset:
        def __init__(self) -> None:
            # The same each time: tests keep what they made of it in files.
            numbers = torch.Generator().manual_seed(0)
            src, dst = torch.randint(2000, (2, 13000), generator=numbers)
            self._graph = dgl.graph((src, dst), num_nodes=2000)
            self._graph.ndata["feat"] = torch.rand(2000, 8, generator=numbers)
            self._graph.ndata["label"] = torch.randint(70, (2000,), generator=numbers)

        def __getitem__(self, number: int) -> dgl.DGLGraph:
            return [self._graph][number]

    dgl.data.CoraFullDataset = CoraFullDataset


def stand_in_pygod(checkout: str) -> None:
    """The folder of the graphs that PyGOD's tests read, where they look for it."""
    Path("pygod").symlink_to(Path(checkout, "pygod"))
    # They are objects of PyG's, which PyTorch since 2.6 reads when it is told to.
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"


def stand_in_cugraph(checkout: str) -> None:
    """The modules of cuGraph that its tests of loaders import: stores that are dicts, and PyG's
    loaders, or ours under their names, of the data that the stores make.

    Without a GPU what the tests put there is on the CPU.
    """
    import networkx
    import torch
    from torch_geometric import loader

    def edges() -> dict[str, Any]:
        ends = list(networkx.karate_club_graph().to_directed().edges)
        return dict(zip(("src", "dst"), zip(*ends, strict=True), strict=True))

    karate = types.SimpleNamespace(get_edgelist=edges, number_of_nodes=lambda: 34)
    nothing = {
        f"cugraph_comms_{name}": lambda *values, **options: None
        for name in ("init", "shutdown", "create_unique_id")
    }
    root = "cugraph_pyg"
    modules: dict[str, dict[str, Any]] = {
        "cugraph": {},
        "cugraph.datasets": {"karate": karate},
        "pylibcugraph": {},
        "pylibcugraph.comms": nothing,
        # Its fixture is asked for, and not used.
        "rapids_pytest_benchmark": {},
        root: {},
        f"{root}.utils": {},
        f"{root}.utils.imports": {
            "import_optional": __import__,
            "MissingModule": type("MissingModule", (), {}),
        },
        f"{root}.data": {"GraphStore": _Edges, "FeatureStore": _Features},
        f"{root}.loader": {
            "NeighborLoader": _loading(loader.NeighborLoader),
            "LinkNeighborLoader": _loading(loader.LinkNeighborLoader),
        },
    }
    for name, values in modules.items():
        module = types.ModuleType(name)
        vars(module).update(values)
        # A package, whose tests are in the checkout.
        tests = Path(checkout, "python", "cugraph-pyg", root)
        module.__path__ = [str(tests)] if name == root else []
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)
    if not torch.cuda.is_available():
        _cuda_is_the_cpu()
        torch.distributed.init_process_group = lambda *values, **options: None
        torch.distributed.destroy_process_group = lambda *values, **options: None


class _Edges(dict[Any, Any]):
    """A ``GraphStore``: pairs of sources and targets, and numbers of nodes, by edge type."""

    def put_edge_index(
        self, edges: Any, kind: Any, layout: str, is_sorted: bool, size: tuple[int, int]
    ) -> None:
        self[kind, layout, is_sorted, size] = edges

    def __setitem__(self, key: Any, edges: Any) -> None:
        import torch

        kind, _, _, size = key
        super().__setitem__(kind, (torch.stack(list(edges)), size))

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key[0])[0]


class _Features(dict[Any, Any]):
    """A ``FeatureStore``: tensors by (type, name, None)."""


# Before the names of what edges have: without types nodes may have the same.
_EDGES = "edge_"


def _data_of(stores: Any) -> Any:
    """Returns the data of the stores, without types if there is one, as cuGraph's batches are."""
    from torch_geometric.data import HeteroData

    features, edges = stores
    data = HeteroData()
    for kind, (index, size) in edges.items():
        data[kind].edge_index = index
        data[kind[0]].num_nodes, data[kind[2]].num_nodes = size
    for (kind, name, _), values in features.items() if isinstance(features, _Features) else ():
        data[kind][_EDGES + name if isinstance(kind, tuple) else name] = values
    if len(edges) > 1 or len(data.node_types) > 1:
        return data
    return data.to_homogeneous(add_node_type=False, add_edge_type=False)


def _loading(kind: Any) -> Any:
    """A loader of stores, which has numbers of what was sampled as tensors."""
    import torch
    from torch_geometric.data import Data

    class Loading(kind):  # type: ignore[misc]
        def __init__(self, data: Any, *values: Any, **options: Any) -> None:
            features = data[0] if isinstance(data[0], _Features) else ()
            stored = {name for kind, name, _ in features if isinstance(kind, tuple)}
            for option in ("time_attr", "weight_attr"):
                if options.get(option) in stored:
                    options[option] = _EDGES + options[option]
            data = _data_of(data)
            for option in ("input_nodes", "edge_label_index"):
                kind = options.get(option)
                if isinstance(data, Data) and isinstance(kind, (str, tuple)):
                    del options[option]
            super().__init__(data, *values, **options)

        def filter_fn(self, out: Any) -> Any:
            batch = super().filter_fn(out)
            for store in getattr(batch, "stores", [batch]):
                for name in ("num_sampled_nodes", "num_sampled_edges"):
                    if store.get(name) is not None:
                        store[name] = torch.tensor(store[name])
            return batch

    Loading.__name__ = kind.__name__
    return Loading


def _cuda_is_the_cpu() -> None:
    """Has torch's functions take the device "cuda" for the CPU, from now on."""
    from torch.overrides import TorchFunctionMode

    def placed(value: Any) -> Any:
        return "cpu" if isinstance(value, str) and value.startswith("cuda") else value

    class Mode(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, kinds: Any, values: Any = (), options: Any = None
        ) -> Any:
            options = {name: placed(value) for name, value in (options or {}).items()}
            return function(*map(placed, values), **options)

    Mode().__enter__()


class EmptyModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds an empty module for each package of ``STAND_INS`` that is not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] in STAND_INS:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> Any:
        module = mock.MagicMock(name=spec.name)
        module.__path__, module.__spec__, module.__file__ = [], spec, ""
        return module

    def exec_module(self, module: Any) -> None:
        pass
