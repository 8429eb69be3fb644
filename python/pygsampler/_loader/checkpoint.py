"""``ResumableLoader``: loaders whose passes can be left and gone on with elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from pygsampler._engine.checks import describe, integer
from pygsampler._engine.limits import MAX_EPOCH
from pygsampler._loader.epoch_state import EpochState
from pygsampler._loader.shards import DEALS, EpochShard, Shards
from pygsampler._sampling.batch_counter import SEED_MASK
from pygsampler._sampling.plan import Plan

__all__ = ["ResumableLoader", "check_shard_by"]

_VERSION = 1


def check_shard_by(deal: Any) -> str:
    """How seeds are dealt out to ranks."""
    if deal not in DEALS:
        raise ValueError(f"deal: expected one of {DEALS}, got {describe(deal)}")
    return str(deal)


def _digest(plan: Any) -> str:
    """Of what is sampled, and how; of a plan that is not the engine's by its type alone."""
    text = plan.document if isinstance(plan, Plan) else type(plan).__qualname__
    return blake2b(text.encode(), digest_size=8).hexdigest()


class EpochRun:
    """A pass of a loader: its epoch, the batches that it has, and how many were handed over."""

    __slots__ = ("epoch", "handed", "part", "shuffle")

    def __init__(self, epoch: int, part: EpochShard, shuffle: bool = False) -> None:
        self.epoch, self.part, self.handed, self.shuffle = epoch, part, 0, shuffle


class ResumableLoader(EpochState):
    """A loader whose state says which batch is the next."""

    rank: int
    batch_size: int
    drop_last: bool
    _shards: Shards
    # Of the pass that began last.
    _pass: EpochRun | None = None
    # Where the next pass begins, if it is of that epoch; None: of whichever.
    _from: tuple[int | None, int] = (None, 0)

    def state_dict(self) -> dict[str, Any]:
        """Where the pass that began last has come to, as torch's ``StatefulDataLoader`` has it.

        Batches that were sampled ahead, and not handed over, are not counted. It is of plain
        numbers and strings; ranks that have had as many batches as each other have the same.
        """
        epoch, start = self._epoch, self._start_of(self._epoch)
        going, about = self._pass, self._about()
        if going is not None:
            after = going.part.after(going.handed)
            if after is None:
                epoch, start = (going.epoch + 1) % (MAX_EPOCH + 1), 0
            else:
                epoch, start = going.epoch, after
                # Options that were assigned meanwhile are of the next one.
                about = self._about(going.part.shards, going.shuffle)
        return {
            "version": _VERSION,
            "epoch": epoch,
            "start": start,
            "seed": self.seed,
            "sampler_seed": self.sampler.seed,
            "world_size": self.world_size,
            **about,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on, at the next ``iter()``, where another loader was, which had ``state_dict()``.

        With ``deal="batches"`` that one may have had another ``world_size``. Epoch and seeds are
        its; graph, seeds and options are to be what they were.

        Raises
        ------
        TypeError
            For what is no such state.
        ValueError
            For a state of a loader of other seeds, batches or options, naming which.
        """
        own = self._about()
        names = {"version", "epoch", "start", "seed", "sampler_seed", "world_size", *own}
        names.discard("seed_weights")
        if not isinstance(state, Mapping) or any(name not in state for name in names):
            raise TypeError(f"state: expected what state_dict() gave, got {describe(state)}")
        if state["version"] != _VERSION:
            raise ValueError(f"state: expected version {_VERSION}, got {state['version']!r}")
        if self._shards.deal == "seeds":
            own["world_size"] = self.world_size
        for name, value in {"seed_weights": None, **own}.items():
            found = state.get(name)
            if found != value and name == "plan":
                raise ValueError(f"state: expected one of {self.sampler!r}, got another sampler's")
            if found != value and name == "seed_weights":
                raise ValueError("state: expected one of the same seed_weights, got one of others")
            if found != value:
                raise ValueError(f"state: expected {name}={value!r}, got {found!r}")
        epoch = integer(state["epoch"], "state['epoch']", 0, MAX_EPOCH)
        start = integer(state["start"], "state['start']", 0)
        seed = integer(state["seed"], "state['seed']", 0, SEED_MASK)
        of_sampler = integer(state["sampler_seed"], "state['sampler_seed']", 0, SEED_MASK)
        if of_sampler != self.sampler.seed:
            vars(self).update(sampler=self.sampler.with_seed(of_sampler))
        vars(self).update(seed=seed)
        self._follows = self._seed_drawn = False
        self._epoch, self._counted, self._pass = epoch, False, None
        self._from = epoch, start

    def _begin(self, epoch: int) -> EpochRun:
        """A pass of that epoch, from where it is to go on."""
        part = EpochShard(self._shards, self.rank, self._start_of(epoch))
        self._from = None, 0
        begun = self._pass = EpochRun(epoch, part, self.shuffle)
        return begun

    def _start_of(self, epoch: int) -> int:
        """Where the next pass begins, if it is of that epoch."""
        of, start = self._from
        return start if of in (None, epoch) else 0

    def _about(self, shards: Shards | None = None, shuffle: bool | None = None) -> dict[str, Any]:
        """Returns what must be the same where a pass goes on, beside the graph."""
        shards = shards or self._shards
        weights = {} if self._weights is None else {"seed_weights": self._weights.digest}
        return {
            "plan": _digest(self.sampler.plan),
            "deal": shards.deal,
            "num_seeds": shards.num_seeds,
            "batch_size": shards.batch_size,
            "drop_last": shards.drop_last,
            "shuffle": self.shuffle if shuffle is None else shuffle,
            **weights,
        }
