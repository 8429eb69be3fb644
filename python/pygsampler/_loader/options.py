"""Options of the loaders: keywords that they do not have, and types for checkers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "OTHER_LOADERS",
    "DataLoaderOptions",
    "checked_keywords",
    "replacement",
    "similar",
]

F = TypeVar("F", bound=Callable[..., None])

# The table of docs/get-started/torch.md, which a test compares: options of other loaders.
OTHER_LOADERS: dict[tuple[str, ...], str] = {
    ("num_workers", "persistent_workers", "prefetch_factor", "multiprocessing_context"): (
        "none: the engine samples ahead, `prefetch=` says how far"
    ),
    ("batch_sampler",): (
        "`rank=`, `world_size=` and a common `seed=` for a `DistributedSampler`; `seed_weights=` "
        "for a `WeightedRandomSampler`; a sampler of neighbors is the third argument"
    ),
    ("generator", "worker_init_fn"): "`seed=`; without one, `torch.manual_seed`",
    ("collate_fn", "transform"): (
        "`features=`, `labels=`, or in the loop: a batch is ids, and features are indexed with them"
    ),
    ("pin_memory", "pin_memory_device"): (
        '`batch.pin_memory()`; with `device="cuda"` batches are on the GPU already'
    ),
    ("timeout", "in_order", "dataset"): "none: there are no workers to wait for",
    ("num_neighbors", "sizes", "fanout"): (
        "the third argument, fanouts, outermost hop first: PyG's list from its end"
    ),
    ("input_nodes", "node_idx", "indices", "item_sampler"): "the second argument, the seeds",
    ("edge_label_index", "edge_label"): (
        "of a `LinkLoader` the second argument, the edges, and `labels=`"
    ),
    ("negatives", "neg_sampling", "neg_sampling_ratio", "negative_sampler"): (
        "of a `LinkLoader` `negative_sampling=`, such as `NegativeSampling(amount=2)`"
    ),
    ("input_time", "edge_label_time", "time_attr", "temporal_strategy"): (
        "`seed_time=`, with `PGSampler(fanouts, temporal=...)` as the third argument"
    ),
    ("prob", "mask", "edge_weights", "weight_attr"): (
        "options of `PGSampler(fanouts, ...)`, which is then the third argument: `prob=` and "
        "`mask=` name an edge array of the graph"
    ),
    ("replace", "disjoint", "frontier", "fused"): (
        "options of `PGSampler(fanouts, ...)`, which is then the third argument"
    ),
    ("labor",): "`LaborSampler(fanouts, ...)` as the third argument",
    ("graph_sampler",): "the third argument, fanouts or a sampler",
    ("use_ddp", "ddp_seed"): "`rank=`, `world_size=` and a common `seed=`",
    ("use_uva", "use_prefetch_thread", "use_alternate_streams", "gpu_cache"): (
        "none: `graph.pin()` is read by a GPU where it lies, and sampling overlaps on its own"
    ),
}


def similar(name: str, names: Any) -> str:
    """Returns the end of a message that asks for the name that was meant, or nothing."""
    near = get_close_matches(name.replace("_", ""), [each.replace("_", "") for each in names], 1)
    meant = [each for each in names if near and each.replace("_", "") == near[0]]
    return f"; did you mean {meant[0]}?" if meant else ""


def checked_keywords(init: F) -> F:
    """Decorates an ``__init__`` so that keywords that it lacks are answered by the way to go."""
    names = list(inspect.signature(init).parameters)[1:]
    known = frozenset(names)

    @functools.wraps(init)
    def checked(self: Any, *positional: Any, **options: Any) -> None:
        if not known.issuperset(options):
            name = next(each for each in options if each not in known)
            raise TypeError(f"{init.__qualname__.partition('.')[0]}: {_answer(name, names)}")
        init(self, *positional, **options)

    return checked  # type: ignore[return-value]


def replacement(name: str) -> str:
    """Returns the end of a message for an option of other loaders, or nothing."""
    return next((f"; here: {way}" for names, way in OTHER_LOADERS.items() if name in names), "")


def _answer(name: str, names: Sequence[str]) -> str:
    way = replacement(name) or similar(name, names) or f"; it has {', '.join(names)}"
    return f"expected options that it has, got {name}={way}"


class DataLoaderOptions(TypedDict, total=False):
    """Options of a ``DataLoader`` without its batch size, for type checkers."""

    shuffle: bool
    drop_last: bool
    prefetch: int | tuple[int, int] | Literal["auto"]
    prefetch_memory: int | None
    cache: Literal["auto"] | None
    seed: int | None
    rank: int
    world_size: int
    shard_by: str
    skip_batches: int
    device: Any
    features: Mapping[str, Any] | None
    edge_features: Mapping[str, Any] | None
    labels: Any
    label_time: Any
    seed_labels: Any
    seed_time: Any
    progress: bool
    guard: bool
    gpu_share: float | Literal["auto"] | None
    seed_weights: Any
    num_samples: int | None
