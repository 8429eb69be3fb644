"""A check that no sampled edge is later than it may be: over millions of edges, with NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from pygsampler.samplers import Temporal

# The ways in which a row draws among the edges that are there.
WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"replace": True},
    {"prob": "w"},
    {"mask": "m", "frontier": "new"},
    {"prob": "w", "replace": True, "frontier": "new"},
)


# Every mode of time, of edges ("t") and of vertices ("n"), with each of WAYS in its turn.
MODES: list[dict[str, Any]] = [
    {
        "time": time,
        "carry": carry,
        "strategy": strategy,
        "compare": compare,
        "window": window,
        **way,
    }
    for (time, carry, strategy, compare, window), way in zip(
        itertools.product(
            ("t", "n"), ("seed", "edge"), ("uniform", "last"), ("le", "lt"), (None, 0.3)
        ),
        itertools.cycle(WAYS),
        strict=False,
    )
]


def sampler_options(how: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options of a sampler from fields of its rule and other options in one mapping."""
    fields = {name: how[name] for name in ("strategy", "window", "carry") if name in how}
    rule = Temporal(how.get("time", "t"), inclusive=how.get("compare") != "lt", **fields)
    others = {name: how[name] for name in how if name not in {"time", "compare", *fields}}
    return {"temporal": rule, **others}


def none_later(
    hops: list[Mapping[Any, Any]],
    seed_time: Mapping[str, Any],
    times: Mapping[Any, Any],
    how: Mapping[str, Any],
) -> int:
    """Assert that every edge is there at the bound of its row, and return how many edges there are.

    ``hops`` has the blocks of each hop by (source, relation, destination), innermost first,
    ``seed_time`` times of seeds by type and ``times`` of edges by type, or None. A vertex has the
    bound of its seed, or with ``carry="edge"`` the time of the edge that first reached it.
    """
    bounds = {kind: np.asarray(of, np.float64) for kind, of in seed_time.items()}
    total = 0
    for blocks in hops:
        before = dict(bounds)
        for kind, block in blocks.items():
            source, _, target = kind
            ids, local = block.edge_ids.numpy(), block.indices.numpy()
            begin = block.dst_offset
            assert begin + block.num_dst_nodes == len(before[target])
            rows = np.repeat(np.arange(block.num_dst_nodes), np.diff(block.indptr.numpy()))
            bound = before[target][begin + rows]
            reached = bound
            if times[kind] is not None:
                of = times[kind][ids]
                assert (of < bound).all() if how["compare"] == "lt" else (of <= bound).all()
                if how["window"] is not None:
                    assert (of >= bound - how["window"]).all()
                if how["carry"] == "edge":
                    reached = of
            # Vertices are numbered as they are met, so those that are new end the list.
            met, first = np.unique(local, return_index=True)
            new = met >= len(bounds[source])
            assert met[new].tolist() == list(
                range(len(bounds[source]), len(bounds[source]) + int(new.sum()))
            )
            bounds[source] = np.concatenate([bounds[source], reached[first[new]]])
            total += len(ids)
    return total
