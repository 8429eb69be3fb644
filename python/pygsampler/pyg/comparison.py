"""Comparison of times of edges and of seeds: ``temporal_comparison`` and ``carry``."""

from __future__ import annotations

from typing import Any

from pygsampler._engine.checks import describe
from pygsampler._graph.graph import is_homogeneous
from pygsampler.samplers.temporal import Temporal

__all__ = ["mirrored", "temporal_rule"]

# ``inclusive`` of the core's rule, and whether times run the other way.
_COMPARISONS = {
    "monotonically_decreasing": (True, False),
    "strictly_decreasing": (False, False),
    "monotonically_increasing": (True, True),
    "strictly_increasing": (False, True),
}


def temporal_rule(
    time_attr: Any, temporal_strategy: Any, temporal_comparison: Any, carry: Any
) -> tuple[Temporal | None, bool]:
    """Returns the ``temporal`` of the core's sampler, and True if all times are to be negated.

    Without ``temporal_comparison`` times are at most the seed's at every hop, as in PyG; with it
    they are bounded by the edge before, as in cuGraph, unless ``carry`` says otherwise.
    """
    if temporal_strategy not in ("uniform", "last"):
        raise ValueError(
            f"temporal_strategy: expected 'uniform' or 'last', got {describe(temporal_strategy)}"
        )
    if time_attr is not None and not isinstance(time_attr, str):
        raise TypeError(f"time_attr: expected the name of an attribute, got {describe(time_attr)}")
    for name, value in (("temporal_comparison", temporal_comparison), ("carry", carry)):
        if value is not None and time_attr is None:
            raise ValueError(f"{name}: expected None without time_attr, got {value!r}")
    if carry not in (None, "seed", "edge"):
        raise ValueError(f"carry: expected 'seed', 'edge' or None, got {describe(carry)}")
    if time_attr is None:
        return None, False
    if temporal_comparison is None:
        return Temporal(time_attr, temporal_strategy, carry=carry or "seed"), False
    if temporal_comparison not in _COMPARISONS:
        raise ValueError(
            f"temporal_comparison: expected one of {tuple(_COMPARISONS)} or None, got "
            f"{describe(temporal_comparison)}"
        )
    inclusive, mirror = _COMPARISONS[temporal_comparison]
    rule = Temporal(time_attr, temporal_strategy, inclusive=inclusive, carry=carry or "edge")
    return rule, mirror


def mirrored(graph: Any, name: str) -> Any:
    """``graph`` with negated times of that name."""
    if graph._service is not None:
        raise NotImplementedError(
            "temporal_comparison: expected 'monotonically_decreasing', 'strictly_decreasing' or "
            "None for a partitioned graph"
        )
    if is_homogeneous(graph):
        return graph.with_data(_negated(graph.edata, name), _negated(graph.ndata, name))
    return graph.with_data(
        {kind: _negated(arrays, name) for kind, arrays in graph.edata.items()},
        {kind: _negated(arrays, name) for kind, arrays in graph.ndata.items()},
    )


def _negated(arrays: Any, name: str) -> dict[str, Any]:
    """Returns the array of that name, negated; nothing if there is none."""
    return {name: -arrays[name].torch()} if name in arrays else {}
