"""``Adjustable``: loaders some of whose options may be assigned between epochs."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._loader.counted_loader import CountedLoader
from pygsampler._loader.options import replacement, similar
from pygsampler._loader.shards import Shards

if TYPE_CHECKING:
    from pygsampler._sampling.sampler import Sampler

__all__ = ["Adjustable"]

# Options that take effect at the next ``iter()``. A pass that goes on has a copy of the loader.
_ADJUSTABLE = (
    *("batch_size", "drop_last", "shuffle", "prefetch"),
    *("low_mark", "progress", "sampler_share"),
)
# Attributes that loaders have, and do not change.
_FIXED = ("sampler", "graph", "seed", "rank", "world_size", "negatives")
_LEAST = {"batch_size": 1, "prefetch": 0}
_set = object.__setattr__
_WAYS = {
    "seed": "set_seed(...) takes another one from the next epoch on",
    "epoch": "set_epoch(...) chooses the next one",
}


class Adjustable(CountedLoader):
    """A loader whose attributes are options that take effect, or raise when they are assigned."""

    prefetch: int
    # Those of static batches.
    _passes: Any
    low_mark: int | None = None
    progress: bool = False
    sampler_share: float | None = None

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            if name[0] != "_" and "_complete" in self.__dict__:
                self._check_assigned(name)
                if name in _ADJUSTABLE:
                    value = self._checked(name, value)
                    self._adjust(name, value)
            _set(self, name, value)

    def _check_assigned(self, name: str) -> None:
        """AttributeError for what has no effect, or none any more."""
        kind = _library_class(self)
        options = list(inspect.signature(kind).parameters)
        changing = [each for each in _ADJUSTABLE if each in options]
        if name in changing or _of_subclass(self, kind, name):
            return
        fixed = name not in _ADJUSTABLE and (
            (name in _FIXED and name in self.__dict__) or hasattr(kind, name)
        )
        if type(self) is not kind and not fixed:
            # A subclass has attributes of its own.
            return
        if fixed or name in (*options, "fanouts"):
            way = _WAYS.get(name) or (
                f"make another {kind.__name__}; {', '.join(changing)} may be assigned"
            )
            raise AttributeError(
                f"{name}: expected no assignment, since it is fixed when a loader is made, got "
                f"one; {way}"
            )
        way = replacement(name) or similar(name, [*changing, *options])
        raise AttributeError(
            f"{name}: expected an option of {kind.__name__}, got {name!r}"
            f"{way or '; a subclass may have attributes of its own'}"
        )

    def _checked(self, name: str, value: Any) -> Any:
        """Returns the value of an option that may be assigned, as it is kept."""
        least = _LEAST.get(name)
        if least is not None:
            return integer(value, name, least)
        if name == "low_mark":
            return None if value is None else integer(value, name, 0, max(self.prefetch - 1, 0))
        if name == "sampler_share":
            return _share(value, self.sampler)
        return boolean(value, name)

    def _adjust(self, name: str, value: Any) -> None:
        """Makes the other parts of the loader agree with a value that is about to be assigned."""
        if name in ("batch_size", "drop_last"):
            if self._passes is not None:
                raise AttributeError(
                    f"{name}: expected no assignment with static=True, whose memory has the size "
                    "of a batch, got one; make another loader"
                )
            if self._from[1]:
                raise AttributeError(
                    f"{name}: expected no assignment between start= or load_state_dict and the "
                    "epoch that goes on, got one; assign it after that epoch"
                )
            about = {"batch_size": self.batch_size, "drop_last": self.drop_last, name: value}
            known = self._shards
            self._shards = Shards(
                known.num_seeds,
                about["batch_size"],
                known.world_size,
                about["drop_last"],
                known.deal,
            )
        elif name == "shuffle" and value:
            self._check_shuffle()
        elif name == "prefetch":
            low = self.low_mark
            if low is not None and low > max(value - 1, 0):
                raise ValueError(
                    f"prefetch: expected more than low_mark ({low}), got {value}; "
                    "assign low_mark first"
                )

    def _check_shuffle(self) -> None:
        """ValueError for a loader whose order cannot be permuted."""
        if self._weights is not None:
            raise ValueError(
                "shuffle: expected False with seed_weights, whose draws have a random order in "
                "each epoch, got True"
            )
        self._check_seed(self._seed_drawn, shuffle=True)


def _library_class(loader: Adjustable) -> type:
    """The class of this package that a loader is of."""
    return next(c for c in type(loader).__mro__ if c.__module__.startswith("pygsampler."))


def _of_subclass(loader: Adjustable, kind: type, name: str) -> bool:
    """True if a class below ``kind`` defines the name."""
    mro = type(loader).__mro__
    return any(name in vars(each) for each in mro[: mro.index(kind)])


def _share(share: Any, sampler: Sampler[Any]) -> float | None:
    """Returns a part of a GPU that the sampler can be kept within, or None."""
    if share is None:
        return None
    if isinstance(share, bool) or not isinstance(share, (int, float)):
        raise TypeError(f"sampler_share: expected a number, got {describe(share)}")
    if not 0 < share <= 1:
        raise ValueError(f"sampler_share: expected a number in (0, 1], got {share}")
    try:
        sampler.within(share)
    except NotImplementedError as error:
        raise ValueError(
            f"sampler_share: expected None with a sampler of your own, got {share}; {error}"
        ) from None
    return float(share)
