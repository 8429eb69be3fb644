"""Order, depth, failure and cancellation of jobs in flight, with jobs made of Python."""

from __future__ import annotations

import operator
from contextlib import nullcontext

import pytest

from pygsampler._loader import prefetch
from pygsampler._loader.prefetch import prefetch_groups, prefetch_in_order


class Desk:
    """Takes jobs and remembers what happened to them."""

    def __init__(self, fails_in_result: int = -1, fails_in_submit: int = -1) -> None:
        self.fails_in_result = fails_in_result
        self.fails_in_submit = fails_in_submit
        self.submitted: list[int] = []
        self.ended: list[int] = []
        self.cancelled: list[int] = []
        self.taken = 0

    def submit(self, step: int) -> FakeJob:
        if step == self.fails_in_submit:
            raise RuntimeError(f"submit {step}")
        self.submitted.append(step)
        return FakeJob(self, step)


class FakeJob:
    def __init__(self, desk: Desk, step: int) -> None:
        self.desk = desk
        self.step = step

    def result(self) -> int:
        self.desk.ended.append(self.step)
        if self.step == self.desk.fails_in_result:
            raise RuntimeError(f"result {self.step}")
        return self.step

    def done(self) -> bool:
        return True

    def cancel(self) -> None:
        self.desk.cancelled.append(self.step)

    @property
    def in_flight(self) -> bool:
        return self.step not in self.desk.ended


@pytest.mark.parametrize("depth", [0, 1, 2, 5, 100])
def test_in_order_and_never_deeper_than_asked(depth: int) -> None:
    desk = Desk()
    for expected, got in enumerate(prefetch_in_order(desk.submit, 20, depth)):
        assert got == expected
        assert len(desk.submitted) == min(20, expected + 1 + depth)
    assert desk.submitted == desk.ended == list(range(20))
    assert desk.cancelled == []


@pytest.mark.parametrize("in_what", ["order", "groups"])
def test_a_steady_queue_does_not_rest(in_what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that are done ever earlier: others rest, as the clock has it."""
    monkeypatch.setattr(prefetch, "LOOK", 0.0)
    monkeypatch.setattr(FakeJob, "done", lambda job: job.step <= 2 * job.desk.taken)
    monkeypatch.setattr(FakeGroup, "done", lambda group: group.steps[0] <= 2 * group.desk.taken)

    def submitted(steady: bool) -> list[int]:
        desk, found = GroupDesk(), []
        results = (
            prefetch_in_order(desk.submit, 40, 8, steady=steady)
            if in_what == "order"
            else prefetch_groups(desk.submit_many, 40, 8, 1, steady=steady)
        )
        for desk.taken, _ in enumerate(results):
            found.append(len(desk.submitted))
        return found

    each = [min(40, taken + 1 + 8) for taken in range(40)]
    assert submitted(steady=True) == each
    assert min(map(operator.sub, submitted(steady=False), each)) < 0


def test_nothing_runs_before_the_first_is_asked_for() -> None:
    desk = Desk()
    prefetch_in_order(desk.submit, 20, 4)
    assert desk.submitted == []


def test_no_steps() -> None:
    assert list(prefetch_in_order(Desk().submit, 0, 4)) == []


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("where", ["result", "submit"])
def test_a_failure_raises_in_its_place(depth: int, where: str) -> None:
    desk = Desk(**{f"fails_in_{where}": 6})
    got = []
    with pytest.raises(RuntimeError, match=f"{where} 6"):
        for step in prefetch_in_order(desk.submit, 20, depth):
            got.append(step)
    assert got == list(range(6))
    assert sorted(desk.ended + desk.cancelled) == sorted(desk.submitted)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_leaving_early_cancels_what_is_in_flight(depth: int) -> None:
    desk = Desk()
    batches = prefetch_in_order(desk.submit, 20, depth)
    next(batches)
    next(batches)
    batches.close()
    assert desk.cancelled == list(range(2, 2 + depth))
    dropped = prefetch_in_order(desk.submit, 20, depth)
    next(dropped)
    desk.cancelled.clear()
    del dropped
    assert desk.cancelled == list(range(1, 1 + depth))


def test_an_interrupt_cancels_what_is_in_flight() -> None:
    class Interrupted(Desk):
        def submit(self, step: int) -> FakeJob:
            if step == 4:
                raise KeyboardInterrupt
            return super().submit(step)

    desk = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        list(prefetch_in_order(desk.submit, 20, 2))
    assert sorted(desk.ended + desk.cancelled) == desk.submitted == [0, 1, 2, 3]


# ---- jobs whose results are the beginning of second ones ----


class Slow(Desk):
    """Jobs that are done when they are waited for, or before."""

    def __init__(self, ready: bool = True, **fails: int) -> None:
        super().__init__(**fails)
        self.ready = ready

    def submit(self, step: int) -> FakeJob:
        job = super().submit(step)
        job.done = lambda: self.ready  # type: ignore[attr-defined]
        return job


@pytest.mark.parametrize("depth", [0, 1, 2, 5, 100])
@pytest.mark.parametrize("ready", [True, False])
def test_second_jobs_in_order_and_never_deeper_than_asked(ready: bool, depth: int) -> None:
    first, second = Slow(ready), Desk()
    for expected, got in enumerate(prefetch_in_order(first.submit, 20, depth, second.submit)):
        assert got == expected
        assert len(first.submitted) == min(20, expected + 1 + depth)
        # Those that are done are handed on; of the others nobody waits for more than one.
        begun = expected + max(depth, 1) if ready else expected + 1
        assert len(second.submitted) == min(20, begun)
    for desk in (first, second):
        assert desk.submitted == desk.ended == list(range(20))
        assert desk.cancelled == []
    assert list(prefetch_in_order(first.submit, 0, depth, second.submit)) == []


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize("stage", [0, 1])
@pytest.mark.parametrize("where", ["result", "submit"])
def test_a_failure_in_either_raises_in_its_place(
    where: str, stage: int, ready: bool, depth: int
) -> None:
    desks = [Slow(ready, **({f"fails_in_{where}": 6} if stage == i else {})) for i in (0, 1)]
    got = []
    with pytest.raises(RuntimeError, match=f"{where} 6"):
        for step in prefetch_in_order(desks[0].submit, 20, depth, desks[1].submit):
            got.append(step)
    assert got == list(range(6))
    for desk in desks:
        assert sorted(desk.ended + desk.cancelled) == desk.submitted


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("ready", [True, False])
def test_leaving_early_cancels_both(ready: bool, depth: int) -> None:
    for end in (lambda batches: batches.close(), lambda batches: None):
        first, second = Slow(ready), Slow()
        batches = prefetch_in_order(first.submit, 20, depth, second.submit)
        assert [next(batches), next(batches)] == [0, 1]
        end(batches)
        del batches
        assert sorted(first.ended + first.cancelled) == first.submitted == list(range(2 + depth))
        assert sorted(second.ended + second.cancelled) == second.submitted
        assert second.ended == [0, 1]
        assert set(first.cancelled).isdisjoint(second.submitted)


@pytest.mark.parametrize("ready", [True, False])
def test_an_interrupt_in_the_second_cancels_both(ready: bool) -> None:
    class Interrupted(Slow):
        def submit(self, step: int) -> FakeJob:
            if step == 4:
                raise KeyboardInterrupt
            return super().submit(step)

    first, second = Slow(ready), Interrupted()
    with pytest.raises(KeyboardInterrupt):
        list(prefetch_in_order(first.submit, 20, 3, second.submit))
    assert set(first.ended + first.cancelled) == set(first.submitted) >= set(range(5))
    assert sorted(second.ended + second.cancelled) == second.submitted == [0, 1, 2, 3]


class GroupDesk(Desk):
    """Takes several jobs at a time; their results come together."""

    def submit_many(self, first: int, count: int) -> FakeGroup:
        if first <= self.fails_in_submit < first + count:
            raise RuntimeError(f"submit {self.fails_in_submit}")
        self.submitted += range(first, first + count)
        self.groups.append(count)
        return FakeGroup(self, range(first, first + count))

    def __init__(self, **fails: int) -> None:
        super().__init__(**fails)
        self.groups: list[int] = []


class FakeGroup:
    def __init__(self, desk: GroupDesk, steps: range) -> None:
        self.desk = desk
        self.steps = steps

    def result(self) -> list[int | Exception]:
        self.desk.ended += self.steps
        fails = self.desk.fails_in_result
        if fails not in self.steps:
            return list(self.steps)
        return [*range(self.steps[0], fails), RuntimeError(f"result {fails}")]

    def done(self) -> bool:
        return True

    def cancel(self) -> None:
        self.desk.cancelled += self.steps


@pytest.mark.parametrize(("depth", "size"), [(2, 1), (4, 2), (7, 3), (8, 4), (100, 50)])
def test_groups_in_order_and_never_deeper_than_asked(depth: int, size: int) -> None:
    desk = GroupDesk()
    for expected, got in enumerate(prefetch_groups(desk.submit_many, 21, depth, size)):
        assert got == expected
        ahead = len(desk.submitted) - expected - 1
        assert min(depth - size + 1, 20 - expected) <= ahead <= depth
    assert desk.submitted == desk.ended == list(range(21))
    assert set(desk.groups[:-1]) <= {size} and desk.cancelled == []
    assert list(prefetch_groups(desk.submit_many, 0, depth, size)) == []


@pytest.mark.parametrize("fails", range(8))
@pytest.mark.parametrize("where", ["result", "submit"])
def test_a_failure_in_a_group_raises_in_its_place(fails: int, where: str) -> None:
    desk = GroupDesk(**{f"fails_in_{where}": fails})
    got = []
    with pytest.raises(RuntimeError, match=f"{where} {fails}"):
        for step in prefetch_groups(desk.submit_many, 20, 7, 3):
            got.append(step)
    # What is submitted by one call fails together.
    assert got == list(range(fails if where == "result" else fails // 3 * 3))
    assert sorted(desk.ended + desk.cancelled) == desk.submitted


def test_leaving_early_cancels_groups_in_flight() -> None:
    desk = GroupDesk()
    for step in prefetch_groups(desk.submit_many, 40, 8, 4):
        if step == 2:
            break
    assert desk.cancelled == [4, 5, 6, 7]


@pytest.mark.parametrize("fails", [-1, 5])
@pytest.mark.parametrize("in_what", ["order", "groups"])
def test_the_result_that_comes_next_is_found_where_it_is_there(
    in_what: str, fails: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    upcoming: prefetch.Upcoming[int] = prefetch.Upcoming()
    assert upcoming.find() is None
    desk = GroupDesk(fails_in_result=fails)
    # Of odd results nobody knows whether they are there.
    monkeypatch.setattr(FakeJob, "done", lambda job: job.step % 2 == 0)
    monkeypatch.setattr(FakeGroup, "done", lambda group: group.steps[0] % 2 == 0)
    results = (
        prefetch_in_order(desk.submit, 12, 4, upcoming=upcoming)
        if in_what == "order"
        else prefetch_groups(desk.submit_many, 12, 6, 3, upcoming=upcoming)
    )
    found, got = {}, []
    with pytest.raises(RuntimeError) if fails >= 0 else nullcontext():
        for step in results:
            got.append(step)
            found[step] = upcoming.find()
            assert found[step] == upcoming.find()
    assert got == list(range(12 if fails < 0 else fails))
    for step in got:
        there = step + 1 < len(got)
        if in_what == "order":
            there = there and step % 2 == 1
        elif step % 3 == 2:
            there = there and (step + 1) % 2 == 0
        assert found[step] == (step + 1 if there else None)
    if fails < 0:
        assert upcoming.find() is None


def test_a_job_is_pending_if_it_is_older_than_the_result_at_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FakeJob, "done", lambda job: job.desk.taken > 6)
    for depth, low, pending in ((4, None, True), (1, None, False), (4, 0, False), (0, None, False)):
        upcoming: prefetch.Upcoming[int] = prefetch.Upcoming()
        desk = Desk(fails_in_result=9)
        assert not upcoming.is_pending()
        results = prefetch_in_order(desk.submit, 12, depth, low=low, upcoming=upcoming)
        with pytest.raises(RuntimeError):
            for desk.taken, step in enumerate(results):
                assert upcoming.find() == (
                    step + 1 if desk.taken > 6 and depth and step < 8 else None
                )
                # A failure is not waited for, once it is known.
                assert upcoming.is_pending() == (pending and step < 8)
