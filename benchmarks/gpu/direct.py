"""The engine with as little Python around it as there can be, and batches by the public ways.

Latency of the engine is the time of two calls of the extension: DeviceSubmit, which launches, and
DeviceWait, which returns when the batch is there. Seeds and output are tensors made before.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import torch

import pygsampler as pgs
from pygsampler._batch import layout
from pygsampler._batch.buffer import edges_of_blocks
from pygsampler._engine import library
from pygsampler._engine import memory as memories

from .graphs import Made


class Direct:
    """One sampler on one graph through the extension's functions."""

    def __init__(
        self,
        made: Made,
        fanouts: Sequence[int],
        mode: str = "auto",
        *,
        replace: bool = False,
        mode_options: dict[str, Any] | None = None,
    ) -> None:
        self.made = made
        self.hops = len(fanouts)
        self.sampler = pgs.PGSampler(
            fanouts, seed=1, mode=mode, mode_options=mode_options, replace=replace
        )
        loaded = library.engine()
        self._submit = loaded.module.bridge_DeviceSubmit
        self._many = loaded.module.bridge_DeviceSubmitMany
        self._wait = loaded.module.bridge_DeviceWait
        self._wait_many = loaded.module.bridge_DeviceWaitMany
        self._release = loaded.release
        self._graph = made.graph._handle()
        self._handle = self.sampler._handle()
        self._stream = torch.cuda.current_stream().cuda_stream
        self.room = 1 << 20

    def outputs(self, count: int) -> list[torch.Tensor]:
        """Tensors for ``count`` batches."""
        return [torch.empty(self.room, dtype=torch.uint8, device="cuda") for _ in range(count)]

    def submit(self, seeds: torch.Tensor, number: int, out: torch.Tensor, own: int = 0) -> int:
        """Starts batch ``number``; in a stream of the engine's with ``own``, else in torch's."""
        negated: int = self._submit(
            self._graph, self._handle, seeds.data_ptr(), seeds.numel(), 8 * seeds.element_size(), 1,
            0, number, 0, 0, self._stream, own, out.data_ptr(), out.numel(),
        )  # fmt: skip
        return -negated

    def wait(self, job: int) -> int:
        """The batch's memory: `release` it. Minus the bytes that it would have needed."""
        memory: int = self._wait(job, -1)
        return memory

    def release(self, memory: int) -> None:
        self._release(memory)

    def submit_many(self, seeds: Sequence[torch.Tensor], number: int) -> int:
        """Starts batches that the engine allocates, together; their launch."""
        words = array("q")
        for i, part in enumerate(seeds):
            bits = 8 * part.element_size()
            words.extend((part.data_ptr(), part.numel(), bits, 1, 0, number + i, 0, 0))
        launch: int = self._many(
            self._graph, self._handle, len(seeds), words.buffer_info()[0], self._stream, 1
        )
        return launch

    def wait_many(self, launch: int, count: int) -> list[int]:
        """The memories of the ``count`` batches of a launch: `release` each."""
        memories = array("q", bytes(8 * count))
        if self._wait_many(launch, -1, memories.buffer_info()[0]) != 1:
            raise RuntimeError("a batch of a launch failed")
        return memories.tolist()

    def learn(self, batches: Sequence[torch.Tensor]) -> list[tuple[int, int]]:
        """Runs the batches once, so that the engine and we know what they need.

        Returns (edges, input nodes) of each.
        """
        (out,) = self.outputs(1)
        found = []
        for number, seeds in enumerate(batches):
            while (memory := self.wait(self.submit(seeds, number, out))) < 0:
                del out
                self.room = max(self.room, -memory)
                (out,) = self.outputs(1)
            header = memories.read_int64(memory, 4)[3]
            words = memories.read_int64(header, layout.num_words(self.hops))
            edges = sum(edges_of_blocks(words))
            found.append((edges, words[layout.NUM_NODES]))
            self.room = max(self.room, words[layout.CAPACITY])
            self.release(memory)
        return found


def unequal(got: Any, want: Any) -> str | None:
    """Where two MiniBatches differ; None where they are equal byte for byte."""
    pairs = [(name, got, want) for name in ("input_nodes", "output_nodes", "output_index")]
    for hop, (mine, theirs) in enumerate(zip(got.blocks, want.blocks, strict=True)):
        pairs += [
            (f"blocks[{hop}].{name}", mine, theirs) for name in ("indptr", "indices", "edge_ids")
        ]
    for where, mine, theirs in pairs:
        name = where.rpartition(".")[2]
        a, b = (getattr(side, name).cpu().numpy() for side in (mine, theirs))
        if a.dtype != b.dtype or a.shape != b.shape or (a != b).any():
            return where
    return None
