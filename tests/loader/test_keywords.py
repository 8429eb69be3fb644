"""Keywords that loaders do not have, and values that they are often given by mistake."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler._engine.checks import boolean
from pygsampler._loader.options import OTHER_LOADERS
from pygsampler.torch import DataLoader, LinkLoader
from tests.support.research import HAS_RESEARCH

GRAPH = pgs.Graph.from_coo([1, 2, 3, 4], [0] * 4)
TYPES = pgs.Graph.from_coo(
    {("user", "buys", "item"): ([0, 1], [1, 0]), ("item", "of", "user"): ([0, 1], [1, 0])},
    num_nodes={"user": 2, "item": 2},
)
PAGE = Path(__file__).parents[2] / "docs" / "get-started" / "torch.md"


def page_table() -> dict[tuple[str, ...], str]:
    """The rows of the table of the page, without its links."""
    rows = {}
    text = PAGE.read_text().partition("| there | here |")[2]
    for line in text.splitlines()[2:]:
        if not line.startswith("|"):
            break
        there, here = line.strip("|").split("|")
        names = re.findall(r"`(\w+)=?`", there)
        rows[tuple(names)] = re.sub(r" \(\[[^]]*\]\([^)]*\)\)", "", here).strip()
    return rows


def test_the_table_of_the_page_is_the_table_of_the_errors() -> None:
    found = page_table()
    # What is the same by name is no keyword that is missing.
    assert found.pop(("batch_size", "shuffle", "drop_last")) == "the same, by name"
    assert found == OTHER_LOADERS


@pytest.mark.parametrize(
    ("name", "way"), [(name, way) for names, way in OTHER_LOADERS.items() for name in names]
)
def test_keywords_of_other_loaders_are_answered(name: str, way: str) -> None:
    text = f"expected options that it has, got {name}=; here: {way}"
    for kind in (DataLoader, LinkLoader):
        with pytest.raises(TypeError) as error:
            kind(GRAPH, [0], [2], batch_size=1, **{name: 1})
        assert str(error.value) == f"{kind.__name__}: {text}"
        # Before anything else that is missing.
        with pytest.raises(TypeError, match=f"got {name}="):
            kind(GRAPH, **{name: 1})


@pytest.mark.parametrize(
    ("name", "meant"),
    [("batchsize", "batch_size"), ("drop_lst", "drop_last"), ("feature", "features")],
)
def test_misspelt_keywords_are_answered_by_the_one_that_was_meant(name: str, meant: str) -> None:
    for kind in (DataLoader, LinkLoader):
        with pytest.raises(TypeError, match=rf"got {name}=; did you mean {meant}\?"):
            kind(GRAPH, [0], [2], **{name: 1})


def test_other_keywords_are_answered_by_all_options() -> None:
    with pytest.raises(TypeError, match=r"got colour=; it has graph, seeds, .*edge_features$"):
        DataLoader(GRAPH, [0], [2], batch_size=1, colour=1)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'batch_size'"):
        DataLoader(GRAPH, [0], [2])


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            lambda: DataLoader(GRAPH, None, [2], batch_size=1),
            TypeError,
            r"^seeds: expected a 1-D array of node ids, got None; torch.arange\(5\) are all$",
        ),
        (
            lambda: DataLoader(TYPES, None, [2], batch_size=1),
            TypeError,
            r"^seeds: expected a mapping of types to ids, got NoneType None; \{'user': ids\}",
        ),
        (
            lambda: LinkLoader(GRAPH, [0], [2], batch_size=1, negative_sampling=2),
            TypeError,
            r"^negative_sampling: expected NegativeSampling or None, got int 2; "
            r"NegativeSampling\(amount=2\) draws 2",
        ),
        (
            lambda: LinkLoader(
                TYPES, {("user", "buys", "item"): [0]}, [2], batch_size=1, negative_sampling=2
            ),
            TypeError,
            r"^negative_sampling: expected NegativeSampling or None, got int 2; "
            r"NegativeSampling\(amount=2\) draws 2",
        ),
        (
            lambda: LinkLoader(GRAPH, [0], [2], batch_size=1, negative_sampling="degree"),
            TypeError,
            r"got str 'degree'; NegativeSampling\('degree', amount=1\) draws 1 for each edge$",
        ),
    ],
)
def test_mistakes_have_one_clear_line(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as raised:
        make()
    assert "\n" not in str(raised.value)


def test_attributes_that_a_batch_does_not_have_name_the_option() -> None:
    batch = next(iter(DataLoader(GRAPH, [0], [2], batch_size=1, features={"x": torch.ones(5)})))
    for of, name, text in (
        (batch, "h", r"h: .*MiniBatch, which has x, got 'h'; .* features=\{'h': ...\}"),
        (batch, "y", "y: .* a loader reads rows for labels=..."),
        (batch.blocks[0], "e", r"e: .* no rows of features, .* edge_features=\{'e': ...\}"),
    ):
        assert not hasattr(of, name)
        with pytest.raises(AttributeError, match=text):
            getattr(of, name)
    typed = next(iter(DataLoader(TYPES, {"user": [0]}, [2], batch_size=1)))
    with pytest.raises(AttributeError, match=r"x: .* features=\{'x': ...\}"):
        typed.x  # noqa: B018
    of_links = next(iter(LinkLoader(GRAPH, [0], [2], batch_size=1)))
    with pytest.raises(AttributeError, match=r"blocks: .*; the mini-batch has it: batch.minibatch"):
        of_links.blocks  # noqa: B018
    assert not hasattr(of_links, "nothing")


def test_weights_that_are_none_name_what_gives_them() -> None:
    block = next(iter(DataLoader(GRAPH, [0], [2], batch_size=1))).blocks[0]
    with pytest.raises(TypeError, match=r'weights: .* got NoneType None; .* edge_weights="ht"'):
        block.weighted_sum(torch.ones(3, 2), block.edge_weights)
    with pytest.raises(TypeError, match="scores: expected a tensor, got NoneType None"):
        block.softmax(None)


@pytest.mark.parametrize("true", [True, np.True_, torch.tensor(True)])
def test_truth_values_of_numpy_and_torch_are_accepted(true: Any) -> None:
    assert boolean(true, "here") is True
    assert pgs.PGSampler([2], disjoint=true).disjoint is True
    assert pgs.RandomWalk(2, edge_ids=true).plan["edge_ids"] is True
    if HAS_RESEARCH:
        assert pgs.research.KHop([2], unique=true).plan["unique"] is True
    made = DataLoader(GRAPH, [0, 1], [2], batch_size=1, shuffle=true, seed=1)
    assert made.shuffle is True


@pytest.mark.parametrize("value", [1, 0, "True", None, np.ones(1, bool), np.int64(1), 1.0])
def test_other_values_are_no_truth_values(value: Any) -> None:
    with pytest.raises(TypeError, match="here: expected True or False, got"):
        boolean(value, "here")


@pytest.mark.parametrize(
    ("kind", "most"), [(pgs.PGSampler, 13), (DataLoader, 27), (LinkLoader, 27)]
)
def test_the_number_of_arguments_is_bounded(kind: type, most: int) -> None:
    """An option of one sampler or one mode belongs to that sampler or to ``mode_options``."""
    assert len(inspect.signature(kind).parameters) <= most
