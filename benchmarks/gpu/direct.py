"""The engine with as little Python around it as there can be, and batches by the public ways.

Latency of the engine is the time of two calls of the extension: Submit, which launches, and
Wait, which returns when the batch is there. Seeds and output are tensors made before.
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
from pygsampler._engine import request_layout as at
from pygsampler._sampling.request import empty_request

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
        self._submit = loaded.module.bridge_Submit
        self._many = loaded.module.bridge_SubmitMany
        self._wait = loaded.module.bridge_Wait
        self._wait_many = loaded.module.bridge_WaitMany
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
        words = self._words(own)
        words[at.SEEDS], words[at.NUM_SEEDS] = seeds.data_ptr(), seeds.numel()
        words[at.SEED_BITS], words[at.BATCH] = 8 * seeds.element_size(), number
        words[at.FLAGS] |= at.FLAG_ON_DEVICE
        words[at.OUT], words[at.OUT_BYTES] = out.data_ptr(), out.numel()
        self._submit(*words.buffer_info())
        return words[at.JOB]

    def _words(self, own: int) -> array[int]:
        """A request without seeds."""
        words = empty_request(at.SIZE_DEVICE)
        words[at.GRAPH], words[at.SAMPLER] = self._graph, self._handle
        words[at.STREAM], words[at.FLAGS] = self._stream, at.FLAG_OWN_STREAM * own
        return words

    def wait(self, job: int) -> int:
        """The batch's memory: `release` it. Minus the bytes that it would have needed."""
        memory: int = self._wait(job, -1)
        return memory

    def release(self, memory: int) -> None:
        self._release(memory)

    def submit_many(self, seeds: Sequence[torch.Tensor], number: int) -> int:
        """Starts batches that the engine allocates, together; their launch."""
        words, calls = self._words(1), array("q")
        for i, part in enumerate(seeds):
            bits, place = 8 * part.element_size(), at.FLAG_ON_DEVICE
            calls.extend((part.data_ptr(), part.numel(), bits, place, 0, number + i, 0, 0))
        self._many(*words.buffer_info(), calls.buffer_info()[0], len(seeds))
        return words[at.JOB]

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
    """Returns the first difference of two MiniBatches, or None if they are equal byte for byte."""
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
