"""A heterogeneous graph with the schema and the proportions of IGBH, generated on a device.

Counts are those of IGBH-Full (A. Khatua et al., "IGB: Addressing the Gaps in Labeling, Features,
Heterogeneity, and Size of Public Graph Datasets for Deep Learning Research", KDD 2023). A scale
multiplies the numbers of papers, authors and edges; institutes, fields of study, journals and
conferences grow with its square root, as they do from IGBH-Small to IGBH-Full.

Citations lead both ways in one relation, and each other relation has its reverse, as in MLPerf's
benchmark. Sources are uniform, and destinations follow a power law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

import pygsampler as pgs
from pygsampler._graph.schema import EdgeType

PAPERS, AUTHORS = 269_346_174, 277_220_883
FEW = {"institute": 26_918, "fos": 712_960, "journal": 49_052, "conference": 4_547}
EDGES: dict[EdgeType, int] = {
    ("paper", "cites", "paper"): 3_996_442_004,
    ("paper", "written_by", "author"): 716_761_549,
    ("author", "affiliated_to", "institute"): 48_521_486,
    ("paper", "topic", "fos"): 1_050_280_600,
    # Not counted in the publication: an assumed half and tenth of the papers.
    ("paper", "published", "journal"): PAPERS // 2,
    ("paper", "venue", "conference"): PAPERS // 10,
}
CLASSES, FEATURES = 2_983, 1_024
# A rank of popularity is a uniform number to this power.
_POPULARITY = 2.0
_CHUNK = 1 << 26


@dataclass(frozen=True)
class Sizes:
    """Numbers of nodes and edges at a scale of IGBH-Full."""

    nodes: dict[str, int]
    edges: dict[EdgeType, int]

    @classmethod
    def at(cls, scale: float) -> Sizes:
        """Returns the sizes at `scale`, 1 for IGBH-Full; every type has at least eight nodes."""
        large = {"paper": PAPERS * scale, "author": AUTHORS * scale}
        small = {kind: count * math.sqrt(scale) for kind, count in FEW.items()}
        nodes = {kind: max(int(count), 8) for kind, count in (large | small).items()}
        return cls(nodes, {kind: max(int(count * scale), 8) for kind, count in EDGES.items()})

    @property
    def rows(self) -> int:
        """Rows of features: one for each node."""
        return sum(self.nodes.values())


def generate(sizes: Sizes, device: str = "cuda", seed: int = 1) -> pgs.Graph:
    """Returns the graph on the CPU, with int32 ids; `device` draws and sorts its edges.

    Equal arguments give equal graphs.
    """
    random = torch.Generator(device=device).manual_seed(seed)
    relations = {}
    for (src, name, dst), count in sizes.edges.items():
        src_nodes, dst_nodes = sizes.nodes[src], sizes.nodes[dst]
        # Sources are uniform, and destinations popular: few papers have most of the citations.
        sources = _chosen(src_nodes, count, 1.0, random, device)
        targets = _chosen(dst_nodes, count, _POPULARITY, random, device)
        forward, backward = (sources, targets), (targets, sources)
        if src == dst:
            relations[src, name, dst] = _csc([forward, backward], src_nodes)
            continue
        relations[src, name, dst] = _csc([forward], dst_nodes)
        relations[dst, f"rev_{name}", src] = _csc([backward], src_nodes)
    return pgs.Graph.from_csc(relations, num_nodes=sizes.nodes)


def _chosen(
    nodes: int, count: int, power: float, random: torch.Generator, device: str
) -> torch.Tensor:
    """`count` ids below `nodes`, by ranks that are uniform numbers to a power, int32."""
    ids = torch.randperm(nodes, generator=random, device=device, dtype=torch.int32)
    chosen = torch.empty(count, dtype=torch.int32, device=device)
    for start in range(0, count, _CHUNK):
        part = chosen[start : start + _CHUNK]
        ranks = torch.rand(len(part), generator=random, device=device).pow_(power).mul_(nodes)
        part.copy_(ids[ranks.long().clamp_(max=nodes - 1)])
    return chosen


def _csc(
    edges: list[tuple[torch.Tensor, torch.Tensor]], num_targets: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """(indptr, indices) on the CPU of (sources, targets): row v has the sources of edges into v.

    Edges are sorted by ranges of targets, so that a GPU needs memory for some of them beside their
    ends.
    """
    degrees = sum(torch.bincount(targets, minlength=num_targets) for _, targets in edges)
    assert isinstance(degrees, torch.Tensor)
    indptr = torch.zeros(num_targets + 1, dtype=torch.int64)
    indptr[1:] = torch.cumsum(degrees, 0)
    indices = torch.empty(int(indptr[-1]), dtype=torch.int32)
    first = 0
    while first < num_targets:
        # At least one target, however many edges it has.
        end = int(torch.searchsorted(indptr, indptr[first] + _CHUNK, right=True)) - 1
        end = min(max(end, first + 1), num_targets)
        chosen = [
            (sources[inside], targets[inside])
            for sources, targets in edges
            for inside in [(targets >= first) & (targets < end)]
        ]
        sources, targets = (torch.cat(ends) for ends in zip(*chosen, strict=True))
        order = torch.argsort(targets, stable=True)
        indices[indptr[first] : indptr[end]] = sources[order].cpu()
        first = end
    return indptr, indices
