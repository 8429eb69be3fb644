"""Options of samplers that are attributes: what is assigned counts from the next batch on."""

from __future__ import annotations

from typing import Any

__all__ = ["Renamed", "SamplerOption"]


class SamplerOption:
    """An option of a sampler; an assigned value counts from the next batch on.

    Before ``__init__`` of the sampler has run nothing is checked. ``__init__`` then replaces the
    values of DGL's options, as in DGL's own classes; a name that DGL's class does not have stays an
    attribute of the subclass, without a meaning for sampling.

    The value None is read as the value of the option ``otherwise``.
    """

    def __init__(self, doc: str, otherwise: str | None = None) -> None:
        self.__doc__ = doc
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
    """Another name of an attribute, by which the other framework's class has it."""

    def __init__(self, name: str) -> None:
        self.__doc__ = f"``{name}``, by the name that the other framework's class has for it."
        self._name = name

    def __get__(self, sampler: Any, owner: type | None = None) -> Any:
        return self if sampler is None else getattr(sampler, self._name)

    def __set__(self, sampler: Any, value: Any) -> None:
        setattr(sampler, self._name, value)
