"""``BatchNumber``: which batch of an epoch a tensor of ids is."""

from __future__ import annotations

import os
import pickle
from typing import Any

import pytest
from forks import finish, start
from partners import partner

torch = partner("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from pygsampler._adapters.batch_number import BatchNumber, batch_number_of_ids  # noqa: E402
from pygsampler._adapters.shared_integers import SharedIntegers  # noqa: E402


def test_a_number_follows_from_values() -> None:
    ids = torch.arange(12).reshape(6, 2)[:, 0]
    assert not ids.is_contiguous()
    assert (
        batch_number_of_ids(ids) == batch_number_of_ids(ids.clone()) != batch_number_of_ids(ids[1:])
    )
    assert batch_number_of_ids(ids[:0]) == batch_number_of_ids(torch.arange(0))


def test_ids_without_memory_on_the_host_are_refused() -> None:
    """Not read: an address of a device's is none here."""
    with pytest.raises(TypeError, match="meta"):
        batch_number_of_ids(torch.arange(4, device="meta"))


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor:UserWarning")
def test_ids_without_memory_anywhere_are_refused() -> None:
    with FakeTensorMode(), pytest.raises(RuntimeError):
        batch_number_of_ids(torch.arange(4))


def test_words_of_several_owners_are_apart() -> None:
    # More than a page has places for.
    many = [SharedIntegers([i, -i]) for i in range(1000)]
    many[3][0] = 1 << 62
    assert many[3].tolist() == [1 << 62, -3]
    assert [words.tolist() for words in many[4:]] == [[i, -i] for i in range(4, 1000)]
    copy = many[3].clone()
    copy[1] = 5
    assert many[3].tolist() == [1 << 62, -3] and copy.tolist() == [1 << 62, 5]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_sees_changes() -> None:
    number = BatchNumber(7)
    ids = torch.arange(5)
    asks, answers = os.pipe(), os.pipe()

    def work() -> Any:
        # A place of its own, though the page was the parent's.
        SharedIntegers([11, 12])
        os.write(answers[1], b"x")
        os.read(asks[0], 1)
        return number.number(ids)

    child = start(work)
    os.read(answers[0], 1)
    after = SharedIntegers([1, 2])
    number.set_epoch(9)
    os.write(asks[1], b"x")
    of_child = finish(*child)
    assert of_child == number.number(ids) and of_child[0] == 9
    assert after.tolist() == [1, 2]


def seen(words: Any, asks: Any, answers: Any) -> None:
    while asks.get():
        answers.put(words.tolist())


def test_a_spawned_process_sees_changes() -> None:
    words = SharedIntegers([1, 2])
    context = torch.multiprocessing.get_context("spawn")
    asks, answers = context.SimpleQueue(), context.SimpleQueue()
    worker = context.Process(target=seen, args=(words, asks, answers))
    worker.start()
    for value in (5, -6):
        words[1] = value
        asks.put(True)
        assert answers.get() == [1, value]
    asks.put(False)
    worker.join()


def test_a_pickled_copy_is_apart() -> None:
    number = BatchNumber(7)
    number.set_epoch(3)
    copy = pickle.loads(pickle.dumps(number))
    number.set_epoch(4)
    ids = torch.arange(5)
    assert (number.number(ids)[0], copy.number(ids)[0], copy.seed) == (4, 3, 7)
