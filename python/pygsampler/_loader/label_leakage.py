"""Labels that a batch must not tell: those among its features, and those known too soon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._engine.checks import describe
from pygsampler._features.features import Features
from pygsampler._graph.graph import is_heterogeneous
from pygsampler._graph.schema import check_by_type
from pygsampler._loader.seeds import check_dates, seed_times_tensor
from pygsampler._sampling.seed_times import is_scalar_time

if TYPE_CHECKING:
    from pygsampler._loader.feature_fetcher import FeatureFetcher

__all__ = ["check_label_columns", "label_times"]

# The most seeds whose labels are compared, and the fewest: fewer would be equal by chance.
_MOST, _LEAST = 4096, 32
# The seeds that rule most columns out.
_FIRST = 64


def label_times(graph: Any, times: Any, labels: Any, rule: Any) -> dict[str, torch.Tensor]:
    """Returns the times from which on labels are known, by node type; "" of a homogeneous graph.

    ValueError without labels, and for a sampler without times.
    """
    if times is None:
        return {}
    if labels is None:
        raise ValueError(
            "label_time: expected None without labels= of nodes, got some; with seed_labels= "
            "compare the times with seed_time yourself"
        )
    if rule is None:
        raise ValueError("label_time: expected None for a sampler without temporal=, got some")
    check_dates(times, graph, rule.attr, where="label_time")
    if not is_heterogeneous(graph):
        of_nodes = seed_times_tensor(times, "label_time", graph.num_nodes, "nodes")
        return {} if of_nodes is None else {"": of_nodes}
    if isinstance(labels, Mapping) and is_scalar_time(times):
        times = dict.fromkeys(labels, times)
    if not isinstance(times, Mapping):
        raise TypeError(f"label_time: expected a mapping of types to times, got {describe(times)}")
    found = {}
    for kind, values in check_by_type(times, "label_time", labels, "the labels").items():
        count = graph.num_nodes[kind]
        of_nodes = seed_times_tensor(values, f"label_time[{kind!r}]", count, "nodes")
        if of_nodes is not None:
            found[kind] = of_nodes
    return found


def check_label_columns(
    fetcher: FeatureFetcher,
    seeds: Mapping[str, torch.Tensor],
    labels: Mapping[str, torch.Tensor],
) -> None:
    """Raises ValueError for a feature of nodes of which a column is the label of the seeds.

    A batch has the features of its seeds, so a model would read the answer. Values are compared at
    up to 4096 seeds, where there are 32 nodes or more with labels that are not all the same. Labels
    are those of nodes, which the ``fetcher`` has, or ``labels`` of the seeds, by type.
    """
    found = []
    for kind, label in fetcher.label_tables():
        if kind in seeds:
            ids = _some(torch.unique(seeds[kind]))
            found.append((kind, ids, _columns(label, ids)))
    for kind, rows in labels.items():
        values = _some(rows)
        if len(values):
            found.append((kind, _some(seeds[kind]), values.reshape(len(values), -1).double()))
    for kind, ids, columns in found:
        for place, values in enumerate(columns.unbind(1)):
            known = ~values.isnan()
            if len(torch.unique(ids[known])) < _LEAST or len(torch.unique(values[known])) < 2:
                continue
            for called, feature in fetcher.node_tables(kind):
                column = _equal_column(feature, ids[known], values[known])
                if column is not None:
                    raise ValueError(
                        f"{called}: expected features that do not tell the labels, got column "
                        f"{column}, which is column {place} of labels at {int(known.sum())} seeds; "
                        "leave it out of the features"
                    )


def _some(values: torch.Tensor) -> torch.Tensor:
    """Returns some of all values, since they may be sorted by their labels."""
    return values[:: max(1, len(values) // _MOST)][:_MOST].contiguous()


def _equal_column(feature: Features, ids: torch.Tensor, values: torch.Tensor) -> int | None:
    """The first column that has these values in the rows ``ids``; None if there is none."""
    first = _columns(feature, ids[:_FIRST])
    places = (first == values[:_FIRST, None]).all(0).nonzero().squeeze(1)
    if not len(places):
        return None
    same = (_columns(feature, ids)[:, places] == values[:, None]).all(0)
    return int(places[same][0]) if bool(same.any()) else None


def _columns(feature: Features, ids: torch.Tensor) -> torch.Tensor:
    """Rows as float64 on the CPU, shape [N, columns]."""
    rows = feature.read(ids.to(feature.device) if feature._where() >= 0 else ids)
    found: torch.Tensor = rows.cpu().reshape(len(ids), -1).double()
    return found
