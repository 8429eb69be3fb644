"""The arguments of ``inference``, checked, and the run that they describe."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parameter import UninitializedParameter

from pygsampler._arrays.tensors import as_tensor
from pygsampler._engine.checks import describe
from pygsampler._graph.schema import edge_type_of
from pygsampler._inference.block_layers import (
    BlockLayer,
    RowLayer,
    check_by_row,
    count_arguments,
    layer_name,
    modules_of,
)
from pygsampler._inference.finished_layers import FinishedLayers, fingerprint
from pygsampler._inference.hetero_layers import HeteroLayer, run_hetero_layer
from pygsampler._inference.ranges import InEdges
from pygsampler._inference.tables import NodeTable, Output

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph
    from pygsampler._inference.layer_runs import InferenceRun

__all__ = ["InferencePlan", "evaluation"]


@contextmanager
def evaluation(modules: list[torch.nn.Module]) -> Iterator[None]:
    """Puts modules into evaluation mode, and gives each part its own flag back."""
    flags = [(each, each.training) for module in modules for each in module.modules()]
    try:
        for module in modules:
            module.eval()
        yield
    finally:
        for each, training in flags:
            # Adapters of low rank, for one, merge their matrices in one mode and part them in the
            # other.
            if each.training != training:
                each.train(training)
        for each, training in flags:
            each.training = training


def _is_pyg(value: Any) -> bool:
    """True for a module with layers of PyG; others do not import it."""
    if "torch_geometric" not in sys.modules:
        return False
    from pygsampler._inference.pyg_models import has_layers

    return has_layers(value)


def _takes(layer: Any, name: str) -> bool:
    """True for a layer of PyG with an argument of this name."""
    return _is_pyg(layer) and name in inspect.signature(layer.forward).parameters


def _hint(module: torch.nn.Module) -> str:
    """Returns a module's class and options, also those of PyG's that its text does not show."""
    shown: list[Any] = [type(module).__qualname__, module.extra_repr()]
    if type(module).__module__.partition(".")[0] == "torch_geometric":
        for name, value in sorted(vars(module).items()):
            if name.startswith("_") or name == "training":
                continue
            if isinstance(value, (bool, int, float, str)):
                shown.append(f"{name}={value}")
            elif callable(value):
                shown.append(f"{name}={layer_name(value)}")
    return " ".join(shown)


class InferencePlan:
    """The arguments of a run, checked."""

    def __init__(
        self, model: Any, graph: Graph, features: Any, edge_data: Any, device: Any
    ) -> None:
        self.graph = graph
        self.model, self.layers = self._layers(model)
        entries = [self.model] if self.layers is None else self.layers
        self.modules = list(modules_of(entries))
        for each in self.layers or ():
            # Norms in a layer of PyG have it take all nodes.
            if not _is_pyg(each):
                check_by_row(each)
        hetero = not graph.is_homogeneous
        if hetero and self.layers is not None:
            for each in self.layers:
                if _is_pyg(each) or count_arguments(each) > 2:
                    raise TypeError(
                        "model: expected layers f(blocks, x) or functions f(x) of mappings for a "
                        f"heterogeneous graph, or a model of PyG alone, got {describe(each)}"
                    )
        self.tables = self._tables(features, hetero)
        self.device = self._device(device)
        if self.device.type not in ("cpu", "cuda"):
            raise ValueError(f"device: expected the CPU or a CUDA device, got {self.device}")
        self.cscs = self._cscs(hetero)
        if edge_data is not None and not isinstance(edge_data, Mapping):
            raise TypeError(
                f"edge_data: expected a mapping of names of arguments, got {describe(edge_data)}"
            )
        self.edge_data = self._edge_data(edge_data or {}, hetero)

    def _layers(self, model: Any) -> tuple[Any, list[Any] | None]:
        """Returns a model of PyG and None, or None and layers of a list."""
        if isinstance(model, (list, tuple, torch.nn.ModuleList)) or type(model) is (
            torch.nn.Sequential
        ):
            layers = list(model)
            if not layers or not all(map(callable, layers)):
                raise TypeError(f"model: expected layers in the list, got {describe(model)}")
            return None, layers
        if _is_pyg(model):
            from pygsampler._inference.pyg_models import unwrapped

            return unwrapped(model), None
        if not callable(model):
            raise TypeError(
                "model: expected a model of PyG, a function f(block, x) or a list of layers, got "
                f"{describe(model)}"
            )
        return None, [model]

    def _tables(self, features: Any, hetero: bool) -> dict[Any, NodeTable]:
        counts: Any = self.graph.num_nodes
        if not hetero:
            return {None: NodeTable.of_input(features, "features", counts)}
        if not isinstance(features, Mapping) or not features:
            raise TypeError(
                "features: expected a mapping of node types for a heterogeneous graph, got "
                f"{describe(features)}"
            )
        for kind in features:
            if kind not in counts:
                raise ValueError(f"features: expected node types of {list(counts)}, got {kind!r}")
        return {
            kind: NodeTable.of_input(each, f"features of {kind!r}", counts[kind])
            for kind, each in features.items()
        }

    def _device(self, device: Any) -> torch.device:
        if device is not None:
            device = torch.device(device)
        else:
            found = (each.device for module in self.modules for each in module.parameters())
            default = next(iter(self.tables.values())).device if self.tables else "cpu"
            device = next(found, torch.device(default))
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", torch.cuda.current_device())
        for module in self.modules:
            for each in module.parameters():
                if isinstance(each, UninitializedParameter):
                    raise ValueError(
                        f"model: expected parameters with shapes, got {type(module).__name__} with "
                        "lazy ones; call the model once, or train it, before"
                    )
                if each.device != device:
                    raise ValueError(
                        f"device: expected the device of the model's parameters, {each.device}, "
                        f"got {device}; move the model, model.to({str(device)!r})"
                    )
        return device  # type: ignore[no-any-return]

    def _cscs(self, hetero: bool) -> dict[Any, InEdges]:
        graph = self.graph
        # Arrays of a GPU are used there, and copied from the host's where layers run elsewhere.
        there = self.device.type == "cuda" and graph.device == str(self.device)
        there = there and not graph.pinned and not graph.shared
        source = graph if there else graph.to("cpu")
        if not hetero:
            count = graph.num_nodes
            parts = source.indptr, source.indices, source.edge_ids
            return {None: InEdges(parts, count, count, self.device)}
        counts: Any = graph.num_nodes
        pairs: Any = source.indptr, source.indices, source.edge_ids
        return {
            kind: InEdges(
                tuple(each[kind] for each in pairs),
                *(counts[kind[0]], counts[kind[2]], self.device, kind),
            )
            for kind in graph.edge_types
        }

    def _edge_data(self, edge_data: Mapping[str, Any], hetero: bool) -> dict[str, Any]:
        """Returns rows of edges in the order of each CSC, by the name of an argument."""
        if edge_data and self.layers is not None and not any(map(_is_pyg, self.layers)):
            raise ValueError(
                "edge_data: expected None without layers of PyG; a layer f(block, x) has "
                "block.edge_ids"
            )
        for name in edge_data:
            if self.layers is not None and not any(_takes(each, name) for each in self.layers):
                raise ValueError(
                    f"edge_data: expected arguments of PyG's layers in the list, got {name!r}"
                )
        found: dict[str, Any] = {}
        for name, value in edge_data.items():
            if not hetero:
                found[name] = self._edge_rows(name, value, None, self.graph.edata)
                continue
            values = value
            if isinstance(value, str):
                values = {kind: value for kind in self.cscs if value in self.graph.edata[kind]}
                if not values:
                    raise KeyError(
                        f"edge_data[{name!r}]: expected an array of some edge type, got {value!r}"
                    )
            if not isinstance(values, Mapping):
                raise TypeError(
                    f"edge_data[{name!r}]: expected a mapping of edge types, got {describe(value)}"
                )
            values = {
                edge_type_of(kind, self.cscs, f"edge_data[{name!r}]"): each
                for kind, each in values.items()
            }
            found[name] = {
                kind: self._edge_rows(name, each, kind, self.graph.edata[kind])
                for kind, each in values.items()
            }
        return found

    def _edge_rows(self, name: str, value: Any, kind: Any, named: Mapping[str, Any]) -> Any:
        where, csc = f"edge_data[{name!r}]", self.cscs[kind]
        if isinstance(value, str):
            if value not in named:
                raise KeyError(f"{where}: expected one of {sorted(named)}, got {value!r}")
            value = named[value]
        try:
            rows = as_tensor(value).detach()
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(
                f"{where}: expected a tensor or an array, got {describe(value)}: {error}"
            ) from None
        least = csc.num_edges
        if rows.dim() < 1 or rows.shape[0] < least:
            raise ValueError(
                f"{where}: expected a row for each of {least} edges, got shape {tuple(rows.shape)}"
            )
        if csc.edge_ids is not None:
            last = int(csc.edge_ids.max()) if least else 0
            if last >= max(rows.shape[0], 1):
                raise ValueError(f"{where}: expected a row for edge {last}, got {rows.shape[0]}")
            rows = rows.index_select(0, csc.edge_ids.to(rows.device))
        elif rows.shape[0] != least:
            raise ValueError(f"{where}: expected {least} rows, got {rows.shape[0]}")
        csc.edge_data[name] = rows
        return rows.to(self.device)

    def outputs(self, out: Any) -> dict[Any, Output]:
        """Returns the places of the result, by node type; checked before any layer runs."""
        if self.graph.is_homogeneous:
            device = self.tables[None].device
            return {None: Output(out, "out", self.graph.num_nodes, device)}
        if out is not None and not isinstance(out, Mapping):
            raise TypeError(
                "out: expected a mapping of node types for a heterogeneous graph, got "
                f"{describe(out)}"
            )
        counts: Any = self.graph.num_nodes
        for kind in out or ():
            if kind not in counts:
                raise ValueError(f"out: expected node types of {list(counts)}, got {kind!r}")
        found = {}
        for kind, count in counts.items():
            table = self.tables.get(kind)
            device = self.device if table is None else table.device
            found[kind] = Output((out or {}).get(kind), f"out of {kind!r}", count, device)
        return found

    @property
    def num_rows(self) -> int:
        """The number of rows that layers compute, as far as it is known ahead."""
        if self.layers is not None:
            return 0
        from pygsampler._inference.pyg_models import count_layers

        count = count_layers(self.model)
        if not self.graph.is_homogeneous:
            return 0
        return count * self.graph.num_nodes  # type: ignore[no-any-return]

    def check_shareable(self) -> None:
        """Raises ValueError unless processes may share the nodes of a layer."""
        if self.layers is not None and not self.graph.is_homogeneous:
            raise ValueError(
                "group: expected None for layers on a heterogeneous graph, got a group; a model of "
                "PyG may be shared by processes"
            )

    def finished(self, folder: Any) -> Any:
        """Returns the folder of finished layers of this very run."""
        if self.layers is not None and not self.graph.is_homogeneous:
            raise ValueError(
                "resume: expected None for layers on a heterogeneous graph, whose results are not "
                "stored, got a folder"
            )
        entries = [self.model] if self.layers is None else self.layers
        tensors = (
            (f"{place}.{name}", each)
            for place, module in enumerate(self.modules)
            for name, each in module.state_dict().items()
            # Extra states of modules are objects of any kind.
            if isinstance(each, torch.Tensor)
        )
        modules = [each for module in self.modules for each in module.modules()]
        names = " ".join([*map(layer_name, entries), *map(str, self.modules), *map(_hint, modules)])
        identity = fingerprint(names, tensors, self.cscs.values(), [*self.tables.values()])
        return FinishedLayers(folder, identity)

    def execute(self, run: InferenceRun, outputs: dict[Any, Output]) -> Any:
        """Runs all layers, and returns the result for the caller."""
        for csc in self.cscs.values():
            if self.device.type == "cuda" and csc.nbytes <= run.memory // 4:
                csc.to_device()
        if self.layers is not None and None not in outputs:
            return self._run_hetero_list(run, self.layers, outputs)
        if self.layers is not None:
            table = self._run_list(run, self.layers, outputs[None])
            return outputs[None].finish(table.tensor)
        from pygsampler._inference import pyg_models

        names = {"edge_weight", "edge_attr"}
        if (
            None in outputs
            and pyg_models.works_by_layer(self.model)
            and names >= set(self.edge_data)
        ):
            about = self.model, self.cscs[None], self.tables[None], self.edge_data
            table = pyg_models.run_basic(run, *about, outputs[None])
            return outputs[None].finish(table.tensor)
        x = {}
        for kind, table in self.tables.items():
            rows = table.read_all(self.device)
            # A model may overwrite its input, as activations in place do.
            x[kind] = rows.clone() if table.read_only and rows is table.values else rows
        result = pyg_models.run_model(run, self.model, self.cscs, x.get(None, x), self.edge_data)
        if None in outputs:
            return outputs[None].put(result)
        if not isinstance(result, Mapping):
            raise TypeError(
                f"model: expected a mapping of node types from the model, got {describe(result)}"
            )
        return {kind: outputs[kind].put(each) for kind, each in result.items()}

    def _run_list(self, run: InferenceRun, layers: list[Any], out: Output) -> NodeTable:
        """Runs layers of a list, each with the functions of rows behind it."""
        x, csc = self.tables[None], self.cscs[None]
        groups = _grouped(layers)
        run.expect(len(groups) * csc.num_dst)
        for number, (function, functions) in enumerate(groups):
            layer: Any
            if function is None:
                layer = RowLayer(functions, copies=True)
            elif _is_pyg(function):
                from pygsampler._inference.pyg_layers import list_layer

                layer = list_layer(f"{number}", function, functions, self.edge_data)
            else:
                layer = BlockLayer(function, functions)
            last = number == len(groups) - 1
            edges = None if function is None else csc
            following = run.layer(layer, edges, x, x, out if last else None)
            if number:
                run.release(x)
            x = following
        return x

    def _run_hetero_list(
        self, run: InferenceRun, layers: list[Any], outputs: dict[Any, Output]
    ) -> dict[str, Any]:
        """Runs layers on the blocks of a heterogeneous graph."""
        groups, tables = _grouped(layers), self.tables
        run.expect(len(groups) * sum(each.shape[0] for each in tables.values()))
        for number, group in enumerate(groups):
            places = outputs if number == len(groups) - 1 else None
            following = run_hetero_layer(run, HeteroLayer(*group), self.cscs, tables, places)
            if number:
                for each in tables.values():
                    run.release(each)
            tables = following
        return {kind: outputs[kind].finish(each.tensor) for kind, each in tables.items()}


def _grouped(layers: list[Any]) -> list[tuple[Any, list[Any]]]:
    """Returns each layer with the functions of rows behind it; None stands for no layer."""
    groups: list[tuple[Any, list[Any]]] = []
    for each in layers:
        if _is_pyg(each) or count_arguments(each) > 1:
            groups.append((each, []))
        elif groups:
            groups[-1][1].append(each)
        else:
            groups.append((None, [each]))
    return groups
