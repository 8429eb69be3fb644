"""Graphs with rows and classes that models are trained on: a real one, and one made of a seed."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch.nn import functional

import pygsampler as pgs
from pygsampler.datasets import debian


class Task(NamedTuple):
    """A graph with rows and a class for each node, and the nodes that are trained and tested on."""

    graph: pgs.Graph
    x: torch.Tensor
    y: torch.Tensor
    train: torch.Tensor
    test: torch.Tensor


def words_of_debian() -> Task:
    """The packages of Debian: words weighted by their rarity, rows of length 1."""
    data = debian()
    x = torch.from_numpy(data.features())
    x *= torch.log(len(x) / x.sum(0).clamp(min=1))
    x = functional.normalize(x)
    parts = (torch.from_numpy(part).long() for part in (data.train, data.test))
    return Task(data.graph(), x, torch.from_numpy(data.labels).long(), *parts)


def planted(nodes: int, degree: int = 25, classes: int = 47, width: int = 100) -> Task:
    """Classes of nodes that show in 30 % of their edges and, faintly, in their rows."""
    random = torch.Generator().manual_seed(2)
    y = torch.randint(0, classes, (nodes,), generator=random)
    dst = torch.arange(nodes).repeat_interleave(degree)
    order, starts = y.argsort(), torch.bincount(y, minlength=classes).cumsum(0)
    sizes = torch.bincount(y, minlength=classes)
    within = (torch.rand(len(dst), generator=random) * sizes[y[dst]]).long()
    near = order[(starts - sizes)[y[dst]] + within]
    anywhere = torch.randint(0, nodes, (len(dst),), generator=random)
    src = torch.where(torch.rand(len(dst), generator=random) < 0.3, near, anywhere)
    centers = torch.randn(classes, width, generator=random)
    # Columns of a principal component analysis become smaller from one to the next.
    spread = torch.arange(1, width + 1) ** -0.5
    x = (0.3 * centers[y] + torch.randn(nodes, width, generator=random)) * spread
    train, test = torch.randperm(nodes, generator=random).split([nodes // 2, nodes - nodes // 2])
    return Task(pgs.Graph.from_coo(src, dst, num_nodes=nodes), x, y, train, test)
