"""Samplers whose options may be assigned, in subclasses before ``__init__`` too."""

from __future__ import annotations

from typing import Any, ClassVar

from dgl.dataloading import BlockSampler

from pygsampler._adapters.batch_number import BatchNumber
from pygsampler._sampling import sampler as sampler_base

__all__ = ["OptionSampler", "Renamed", "SamplerOption"]


class SamplerOption:
    """An option of a sampler: what is assigned counts from the next batch on.

    Before ``__init__`` of the sampler has run nothing is checked. Of DGL's options the value is
    then replaced by ``__init__``, as in DGL's own classes; a name that DGL's class does not have
    stays an attribute of the subclass, without a meaning for sampling.

    Where the value is None it is read as that of the option ``otherwise``.
    """

    def __init__(self, about: str, otherwise: str | None = None) -> None:
        self.__doc__ = about
        self._otherwise = otherwise

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, sampler: Any, owner: type | None = None) -> Any:
        if sampler is None:
            return self
        own = sampler.__dict__
        if self._name in own:
            return own[self._name]
        if "_options" not in own:
            raise AttributeError(f"{self._name}: expected a sampler whose __init__ has run")
        value = own["_options"][self._name]
        if self._otherwise is not None and not value:
            return own["_options"][self._otherwise]
        return value

    def __set__(self, sampler: Any, value: Any) -> None:
        own = vars(sampler)
        if self._name in own or "_options" not in own:
            own[self._name] = value
        else:
            sampler._assign(self._name, value)


class Renamed:
    """Another name of an attribute, by which DGL's class has it."""

    def __init__(self, of: str) -> None:
        self.__doc__ = f"``{of}``, by the name that DGL's class has for it."
        self._of = of

    def __get__(self, sampler: Any, owner: type | None = None) -> Any:
        return self if sampler is None else getattr(sampler, self._of)

    def __set__(self, sampler: Any, value: Any) -> None:
        setattr(sampler, self._of, value)


class OptionSampler(BlockSampler):  # type: ignore[misc]
    """A sampler by options, made at the first batch after one has changed.

    It stands before ``Sampler`` among the bases. Options are checked at once where our methods
    sample. A subclass that samples by methods of its own may give its options other values, as
    with DGL's classes, which check nothing; those are refused when our methods read them.
    """

    # Options that DGL's class does not have.
    _ours: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, options: dict[str, Any], seed: int | None, **kwargs: Any) -> None:
        # Not that of Sampler, which is given a sampler.
        BlockSampler.__init__(self, **kwargs)
        self._identity = self._numbers(seed)
        for name in options.keys() - self._ours:
            self.__dict__.pop(name, None)
        self._options = options
        self._sampler: Any = None
        self._made_of: Any = None
        if self._samples():
            self._current()

    def _numbers(self, seed: int | None) -> BatchNumber:
        """The numbers of batches under that seed."""
        return BatchNumber(seed)

    def _samples(self) -> bool:
        """True if the methods that sample are ours, and not those of a subclass."""
        methods = (getattr(type(self), name) for name in ("sample", "sample_blocks"))
        packages = {getattr(each, "__module__", "").partition(".")[0] for each in methods}
        return packages <= {"dgl", "pygsampler"}

    def _assign(self, name: str, value: Any) -> None:
        self._take({name: value})

    def _take(self, changes: dict[str, Any]) -> None:
        """Has the options other values from the next batch on."""
        options = {**self._options, **changes}
        if self._samples():
            self._make_sampler(options, self._identity.seed)
        self._options = options

    def _current(self) -> sampler_base.Sampler[Any]:
        """The sampler, made anew where an option or an item of the list of fanouts has changed."""
        fanouts = self._options.get("fanouts")
        # A list may have been written to; options are another dict where one was assigned.
        now = self._options, tuple(fanouts) if isinstance(fanouts, list) else None
        if self._made_of is None or self._made_of[0] is not now[0] or self._made_of[1] != now[1]:
            self._sampler = self._make_sampler(self._options, self._identity.seed)
            self._made_of = now
        current: sampler_base.Sampler[Any] = super()._current()
        return current

    @staticmethod
    def _make_sampler(options: dict[str, Any], seed: int | None) -> sampler_base.Sampler[Any]:
        """The sampler of these options."""
        raise NotImplementedError
