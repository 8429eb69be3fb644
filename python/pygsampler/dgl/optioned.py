"""Samplers of programs whose options may be assigned."""

from __future__ import annotations

from typing import Any

from pygsampler import sampler as _core
from pygsampler.dgl.sampler import Sampler

__all__ = ["Option", "Optioned"]


class Option:
    """An option of a sampler: what is assigned counts from the next batch on."""

    def __init__(self, about: str) -> None:
        self.__doc__ = about

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, sampler: Any, owner: type | None = None) -> Any:
        return self if sampler is None else sampler._options[self._name]

    def __set__(self, sampler: Any, value: Any) -> None:
        sampler._assign(self._name, value)


class Optioned(Sampler):
    """A sampler that is made anew where an option of it changes."""

    def __init__(self, options: dict[str, Any], seed: int | None, **kwargs: Any) -> None:
        self._options = options
        super().__init__(self._made(options, seed), **kwargs)
        self._identity.set_seed(seed)

    def _assign(self, name: str, value: Any) -> None:
        options = {**self._options, name: value}
        self._sampler = self._made(options, self.seed)
        self._options = options

    @staticmethod
    def _made(options: dict[str, Any], seed: int | None) -> _core.Sampler[Any]:
        """The sampler of these options."""
        raise NotImplementedError
