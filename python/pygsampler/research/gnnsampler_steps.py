"""GNNSampler's named steps (Liu et al., 2021, section 3): the loops of its Algorithms 1 to 4.

The loops run once, when a sampler is created, and note what the steps do with all nodes of a layer.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pygsampler._engine.checks import describe
from pygsampler.programs._language.expressions import Matrix, NodeList
from pygsampler.programs._language.graph_matrix import GraphMatrix
from pygsampler.research.class_checks import attribute, count, integer, refuse

__all__ = ["check_steps", "has_steps", "run_steps"]

# Each step, in order, with the names that the listings have for its result. A step takes those of
# the steps before it, by name.
_BEFORE = ("G", "adj_train", "Bk")
_INIT = {
    "get_minibatch": (),
    "get_sample_standard": ("S",),
    "construct_locality": ("L",),
    "get_batch_input": ("inputs", "v", "l"),
}
_BY_LAYER = {
    **_INIT,
    "get_sample_num": ("n", "n_l"),
    "get_neighbor": ("nei_idx",),
    "get_prob_distribution": ("P",),
    "sample_node": ("sampled_idx",),
    "sample_neighbor": ("sampled_idx",),
    "update_adjacency_matrix": (),
    "update_input": (),
}
_SUBGRAPH = {
    **_INIT,
    "get_batch_input": ("inputs", "subgraph_size"),
    "get_prob_distribution": ("P",),
    "sample_node": ("sampled_idx",),
    "append_node": ("node_pool",),
    "processing": ("adjacency_matrix",),
    "induce_subgraph": (),
}
_ONLY_SUBGRAPH = ("append_node", "processing", "induce_subgraph", "subgraph_size")
_ONLY_LAYERS = (
    *("get_sample_num", "get_neighbor", "sample_neighbor", "update_adjacency_matrix"),
    *("update_input", "layers"),
)


def has_steps(form: type) -> bool:
    """True if the class has a step of Algorithms 1 to 4."""
    return any(hasattr(form, name) for name in (*_BY_LAYER, *_ONLY_SUBGRAPH))


def check_steps(form: type) -> None:
    """Raises a TypeError, with the line, unless the class has the steps of one algorithm.

    Raises
    ------
    TypeError
        For steps that are missing, that no algorithm has, or that take names which the listings do
        not have at their place.
    """
    steps = _steps(form)
    if steps is _SUBGRAPH:
        for name in _ONLY_LAYERS:
            if hasattr(form, name):
                refuse(form, None, f"{name}: expected none with a step of Algorithm 3, got one")
    else:
        _needs(form, "get_sample_num")
        if not (hasattr(form, "get_neighbor") or hasattr(form, "get_prob_distribution")):
            refuse(
                form,
                None,
                "expected get_neighbor (Algorithm 1, node by node), get_prob_distribution "
                "(Algorithm 2, by layers) or induce_subgraph (Algorithm 3), got none",
            )
        if hasattr(form, "sample_neighbor") and hasattr(form, "sample_node"):
            refuse(form, "sample_neighbor", "expected it or sample_node, got both")
    if not hasattr(form, "sample_neighbor"):
        _needs(form, "sample_node")
    known = list(_BEFORE)
    for name, results in steps.items():
        if hasattr(form, name):
            if not callable(getattr(form, name)):
                refuse(
                    form, None, f"{name}: expected a method, got {describe(getattr(form, name))}"
                )
            names = [*known, "s", "n"] if name == "construct_locality" else known
            for each in _parameters(form, name):
                if each not in names:
                    refuse(form, name, f"expected names among {', '.join(names)}, got {each}")
        known += [each for each in results if each not in known]
    for name, _ in inspect.getmembers(form, inspect.isfunction):
        if not name.startswith("_") and name not in (*steps, "layers", "subgraph_size"):
            refuse(
                form,
                name,
                f"expected a step among {', '.join(steps)}; other methods begin with an underscore",
            )


def run_steps(form: type, A: GraphMatrix, seeds: NodeList, constants: dict[str, Any]) -> Any:
    """Runs the algorithm whose steps the class has, and returns what a program returns."""
    app = form(**constants)
    values: dict[str, Any] = {"G": A, "adj_train": A, "Bk": seeds, "S": None, "L": None}

    def step(name: str, default: Any) -> Any:
        if not hasattr(app, name):
            return default
        return getattr(app, name)(**{each: values[each] for each in _parameters(form, name)})

    # The loader divides the nodes into mini-batches; a step that returns nothing leaves them.
    batch = step("get_minibatch", None)
    values["Bk"] = seeds if batch is None else _nodes(form, "get_minibatch", batch)
    values["S"] = step("get_sample_standard", None)
    if hasattr(app, "construct_locality"):
        values.update(
            {
                each: attribute(form, app, each)
                for each in ("s", "n")
                if each in _parameters(form, "construct_locality")
            }
        )
        values["L"] = step("construct_locality", None)
    inputs = _nodes(form, "get_batch_input", step("get_batch_input", values["Bk"]))
    if _steps(form) is _SUBGRAPH:
        values["inputs"] = inputs
        return _subgraph(form, app, step, values)
    return _layers(form, app, inputs, step, values)


def _layers(form: type, app: Any, inputs: NodeList, step: Any, values: dict[str, Any]) -> Any:
    """Runs lines 5 and on of Algorithms 1 and 2, for all nodes of a layer together."""
    blocks: list[Any] = []
    sample = "sample_neighbor" if hasattr(app, "sample_neighbor") else "sample_node"
    for layer in range(count(form, app, "layers")):
        values.update(inputs=inputs, v=inputs, l=layer)
        number = integer(form, "get_sample_num", step("get_sample_num", None), -1)
        values.update(n=number, n_l=number)
        values["nei_idx"] = step("get_neighbor", None)
        values["P"] = step("get_prob_distribution", None)
        sampled = step(sample, None)
        if not isinstance(sampled, Matrix):
            refuse(form, sample, f"expected a matrix of sampled edges, got {describe(sampled)}")
        values["sampled_idx"] = sampled
        block = step("update_adjacency_matrix", None)
        if block is not None and not isinstance(block, (Mapping, Matrix)):
            expected = "expected a matrix, values by name or None"
            refuse(form, "update_adjacency_matrix", f"{expected}, got {describe(block)}")
        blocks.insert(0, sampled if block is None else block)
        # Algorithm 1 has no such line, and would sample the neighbors of the batch in each layer.
        following = step("update_input", None)
        if following is None:
            inputs = inputs | sampled.row()
        else:
            inputs = _nodes(form, "update_input", following)
    return blocks


def _subgraph(form: type, app: Any, step: Any, values: dict[str, Any]) -> Any:
    """Runs lines 7 and on of Algorithm 3, whose loop is one call for ``subgraph_size`` nodes."""
    values["subgraph_size"] = count(form, app, "subgraph_size")
    values["P"] = step("get_prob_distribution", None)
    sampled = _nodes(form, "sample_node", step("sample_node", None))
    values["sampled_idx"] = sampled
    pool = _nodes(form, "append_node", step("append_node", sampled))
    values["node_pool"] = pool
    matrix = step("processing", None) if hasattr(app, "processing") else pool.unique()
    if not isinstance(matrix, (NodeList, Matrix)):
        refuse(form, "processing", f"expected nodes or a matrix, got {describe(matrix)}")
    values["adjacency_matrix"] = matrix
    result = step("induce_subgraph", matrix)
    return values["G"].induce(result) if isinstance(result, NodeList) else result


def _steps(form: type) -> dict[str, tuple[str, ...]]:
    """The steps of the algorithm that the class is written in.

    ``layers`` and ``subgraph_size`` may be set by ``__init__``, and then say nothing of a class.
    """
    if any(hasattr(form, name) for name in _ONLY_SUBGRAPH):
        return _SUBGRAPH
    by_layer = any(hasattr(form, name) for name in _ONLY_LAYERS)
    return _SUBGRAPH if hasattr(form, "sample_node") and not by_layer else _BY_LAYER


def _needs(form: type, name: str) -> None:
    if not hasattr(form, name):
        refuse(form, None, f"expected a method {name}, got none")


def _parameters(form: type, name: str) -> list[str]:
    """The names that a step takes, without the object and without those that have a default."""
    taken = list(inspect.signature(getattr(form, name)).parameters.values())
    if not isinstance(inspect.getattr_static(form, name), (staticmethod, classmethod)):
        taken = taken[1:]
    for each in taken:
        if each.kind is each.POSITIONAL_ONLY:
            refuse(form, name, f"expected arguments by name, got {each.name} by place alone")
    named = (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) if taken else ()
    return [each.name for each in taken if each.kind in named and each.default is each.empty]


def _nodes(form: type, name: str, value: Any) -> NodeList:
    if not isinstance(value, NodeList):
        refuse(form, name, f"expected a list of nodes, got {describe(value)}")
    return value
