"""Values with gradients, which loaders would lose, are an error that names the way."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import pygsampler as pgs
from pygsampler.torch import DataLoader, LinkLoader

GRAPH = pgs.Graph.from_coo([1, 2, 3, 4], [0] * 4)
TYPES = pgs.Graph.from_coo({("a", "to", "b"): ([0, 1], [1, 0])}, num_nodes={"a": 2, "b": 2})
WEIGHT = nn.Parameter(torch.ones(5, 2))
OF_EDGES = torch.ones(4, requires_grad=True)
OPTIONS: dict[str, Any] = {"batch_size": 2}


def by_type(**options: Any) -> Any:
    return DataLoader(TYPES, {"b": [0]}, [2], **OPTIONS, **options)


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda: pgs.Features.from_tensor(WEIGHT), "features"),
        (lambda: DataLoader(GRAPH, [0], [2], features={"x": WEIGHT}, **OPTIONS), r"features\['x'"),
        (lambda: DataLoader(GRAPH, [0], [2], labels=WEIGHT * 2, **OPTIONS), "labels"),
        (
            lambda: DataLoader(GRAPH, [0], [2], edge_features={"e": OF_EDGES}, **OPTIONS),
            r"edge_features\['e'",
        ),
        (lambda: LinkLoader(GRAPH, [0], [2], features={"x": WEIGHT}, **OPTIONS), r"features\['x'"),
        (
            lambda: LinkLoader(GRAPH, [0], [2], edge_features={"e": OF_EDGES}, **OPTIONS),
            r"edge_features\['e'",
        ),
        (lambda: LinkLoader(GRAPH, [0], [2], labels=OF_EDGES[:1], **OPTIONS), "labels"),
        (lambda: by_type(features={"x": {"a": WEIGHT[:2]}}), r"features\['x'\]\['a'"),
        (lambda: by_type(labels={"b": WEIGHT[:2]}), r"labels\['b'"),
    ],
)
def test_values_with_gradients_are_an_error(make: Any, where: str) -> None:
    with pytest.raises(ValueError, match=rf"^{where}.*without a? ?gradient.*requires_grad=True; "):
        make()


def test_the_ways_that_errors_name_train_or_are_plain() -> None:
    with pytest.raises(ValueError, match=r"weight\[batch.input_nodes\], else give weight.detach"):
        DataLoader(GRAPH, [0], [2], features={"x": WEIGHT}, **OPTIONS)
    (batch,) = DataLoader(GRAPH, [0], [-1], features={"x": WEIGHT.detach()}, **OPTIONS)
    assert not batch.x.requires_grad
    rows = WEIGHT[batch.input_nodes]
    (gradient,) = torch.autograd.grad(rows.sum(), WEIGHT)
    assert gradient.equal(torch.ones(5, 2))


def test_modules_are_called_in_the_loop() -> None:
    embedding = nn.Embedding(5, 2)
    for make in (
        lambda: pgs.Features.from_tensor(embedding),
        lambda: DataLoader(GRAPH, [0], [2], features={"x": embedding}, **OPTIONS),
        lambda: LinkLoader(GRAPH, [0], [2], features={"x": embedding}, **OPTIONS),
        lambda: by_type(features={"x": {"a": embedding}}),
    ):
        with pytest.raises(TypeError, match=r"Embedding; .* embedding\(batch.input_nodes\)"):
            make()
