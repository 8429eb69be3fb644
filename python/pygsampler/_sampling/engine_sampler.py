"""``EngineSampler``: the options of a sampler, and its handle in the engine."""

from __future__ import annotations

from array import array
from typing import ClassVar

from pygsampler._core import library
from pygsampler._core.handle import EngineHandle
from pygsampler._sampling.options import Options


class EngineSampler(EngineHandle):
    """What jobs need of a sampler.

    The handle is made when it is first needed, so that a sampler costs nothing before, and anew in
    a forked child, whose engine is another one.
    """

    __slots__ = ("_options", "_seed")

    _end: ClassVar[str] = "SamplerClose"

    _options: Options
    _seed: int

    def __init__(self, options: Options, seed: int) -> None:
        EngineHandle.__init__(self)
        self._options = options
        self._seed = seed

    def _handle(self) -> int:
        """The handle in this process's engine."""
        number = self._current()
        if number:
            return number
        with library.handle_lock():
            if not self._current():
                self._give_back()
                fanouts = array("q", self._options.fanouts)
                about = self._options.arguments(fanouts.buffer_info()[0], self._seed)
                self._make("SamplerNew", *about)
            return self._number
