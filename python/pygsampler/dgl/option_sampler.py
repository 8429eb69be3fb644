"""Samplers whose options may be assigned, in subclasses before ``__init__`` too."""

from __future__ import annotations

from typing import Any, ClassVar

from dgl.dataloading import BlockSampler

from pygsampler._adapters.batch_number import BatchNumber
from pygsampler._sampling import sampler as sampler_base

__all__ = ["OptionSampler"]


class OptionSampler(BlockSampler):  # type: ignore[misc]
    """A sampler by options, built at the first batch after an option has changed.

    It precedes ``Sampler`` among the bases. Options are checked at once where our methods sample. A
    subclass that samples by other methods may assign other values, as with DGL's classes, which
    check nothing; our methods refuse such values when they read them.

    Parameters
    ----------
    options : dict
        The arguments of the sampler by name.
    seed : int or None
        The seed of ``Sampler``.
    **kwargs
        Further arguments of ``Sampler``.
    """

    # Options that DGL's class does not have.
    _ours: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, options: dict[str, Any], seed: int | None, **kwargs: Any) -> None:
        # Not that of Sampler, which is given a sampler.
        BlockSampler.__init__(self, **kwargs)
        self._identity = self._new_batch_number(seed)
        for name in options.keys() - self._ours:
            self.__dict__.pop(name, None)
        self._options = options
        self._sampler: Any = None
        self._made_of: Any = None
        if self._samples():
            self._current()

    def _new_batch_number(self, seed: int | None) -> BatchNumber:
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
        """The sampler, built anew if an option or an item of the list of fanouts has changed."""
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
