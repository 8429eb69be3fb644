"""Options of loaders that may be assigned between epochs, and answers to other assignments."""

from __future__ import annotations

import inspect
from typing import Any, Literal

from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._loader.options import replacement, similar
from pygsampler._loader.prefetch_tuner import AUTO

__all__ = [
    *("ASSIGNABLE", "check_assigned", "check_budget", "check_cache", "check_option"),
    *("library_class", "marks"),
]

# Options that take effect at the next ``iter()``.
ASSIGNABLE = (
    *("batch_size", "drop_last", "shuffle", "prefetch"),
    *("progress", "gpu_share"),
)
# Attributes that loaders have, and do not change.
_FIXED = ("graph", "rank", "negative_sampling")
_WAYS = {
    "seed": "set_seed(...) takes another one from the next epoch on",
    "epoch": "set_epoch(...) chooses the next one",
}


def check_assigned(loader: Any, name: str) -> None:
    """Raises AttributeError where assigning ``name`` to a ``loader`` has no effect, or not now."""
    kind = library_class(loader)
    options = list(inspect.signature(kind).parameters)
    changing = [each for each in ASSIGNABLE if each in options]
    if name in changing:
        _check_now(loader, name)
        return
    if _of_subclass(loader, kind, name):
        return
    fixed = name not in ASSIGNABLE and (
        (name in _FIXED and name in vars(loader)) or hasattr(kind, name)
    )
    if type(loader) is not kind and not fixed:
        # A subclass has attributes of its own.
        return
    if fixed or name in (*options, "fanouts"):
        way = _WAYS.get(name) or (
            f"make another {kind.__name__}; {', '.join(changing)} may be assigned"
        )
        raise AttributeError(
            f"{name}: expected no assignment, since it is fixed when a loader is created, got "
            f"one; {way}"
        )
    way = replacement(name) or similar(name, [*changing, *options])
    raise AttributeError(
        f"{name}: expected an option of {kind.__name__}, got {name!r}"
        f"{way or '; a subclass may have attributes of its own'}"
    )


def check_option(loader: Any, name: str, value: Any) -> Any:
    """Returns the ``value`` of an assignable option ``name`` of a ``loader``, checked."""
    if name == "gpu_share":
        return _share(value, loader.sampler)
    if name == "batch_size":
        return integer(value, name, 1)
    if name != "prefetch":
        return boolean(value, name)
    if isinstance(value, str) and value == AUTO:
        return AUTO
    if not isinstance(value, (tuple, list)):
        return integer(value, name, 0)
    if len(value) != 2:
        raise ValueError(f"prefetch: expected a number or (low, high), got {describe(value)}")
    high = integer(value[1], "prefetch[1]", 1)
    return integer(value[0], "prefetch[0]", 0, high - 1), high


def check_budget(budget: Any, prefetch: Any, static: Any) -> int | None:
    """Returns ``prefetch_memory``, checked, for a loader of these ``prefetch`` and ``static``."""
    if budget is None:
        return None
    if static is not False:
        raise ValueError(
            f"prefetch_memory: expected None with static, whose batches have one memory, got "
            f"{describe(budget)}"
        )
    if isinstance(prefetch, tuple):
        raise ValueError(
            f"prefetch_memory: expected None with a pair of marks, got {describe(budget)}; "
            f"prefetch={prefetch[1]} is the most that are ahead"
        )
    return integer(budget, "prefetch_memory", 1)


def check_cache(cache: Any, is_hetero: bool) -> bool:
    """Returns True for ``cache="auto"``, and False for None."""
    if cache is None:
        return False
    if not isinstance(cache, str) or cache != AUTO:
        raise ValueError(
            f'cache: expected "auto" or None, got {describe(cache)}; '
            "features.cache(rows=...) makes a cache of a chosen size"
        )
    if is_hetero:
        raise ValueError(
            "cache: expected None for a heterogeneous graph, whose features have no cache, got "
            '"auto"'
        )
    return True


def marks(prefetch: Any) -> tuple[int | None, int]:
    """Returns the low mark of ``prefetch``, or None without one, and the high mark."""
    return prefetch if isinstance(prefetch, tuple) else (None, prefetch)


def library_class(loader: Any) -> type:
    """Returns the class of this package that a loader is of."""
    return next(c for c in type(loader).__mro__ if c.__module__.startswith("pygsampler."))


def _check_now(loader: Any, name: str) -> None:
    """Raises AttributeError for the size of a batch where other parts of the loader have it."""
    if name not in ("batch_size", "drop_last"):
        return
    if loader.static:
        raise AttributeError(
            f"{name}: expected no assignment with static, whose memory has the size "
            "of a batch, got one; make another loader"
        )
    if loader._epochs.is_resumed:
        raise AttributeError(
            f"{name}: expected no assignment between skip_batches= or load_state_dict and the "
            "epoch that goes on, got one; assign it after that epoch"
        )


def _of_subclass(loader: Any, kind: type, name: str) -> bool:
    """Returns True if a class below ``kind`` defines the name."""
    mro = type(loader).__mro__
    return any(name in vars(each) for each in mro[: mro.index(kind)])


def _share(share: Any, sampler: Any) -> float | Literal["auto"] | None:
    """Returns a part of a GPU that the sampler stays within, "auto", or None."""
    if share is None:
        return None
    is_auto = isinstance(share, str) and share == AUTO
    if not is_auto:
        if isinstance(share, bool) or not isinstance(share, (int, float)):
            raise TypeError(f'gpu_share: expected a number or "auto", got {describe(share)}')
        if not 0 < share <= 1:
            raise ValueError(f"gpu_share: expected a number in (0, 1], got {share}")
    try:
        sampler.with_gpu_share(1.0 if is_auto else share)
    except NotImplementedError as error:
        raise ValueError(
            f"gpu_share: expected None with a sampler of your own, got {share}; {error}"
        ) from None
    return "auto" if is_auto else float(share)
