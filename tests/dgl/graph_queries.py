"""Questions that a graph of DGL answers, by DGL's name and a variant of it.

Each question returns something that :func:`comparable.plain` makes comparable.
"""

from __future__ import annotations

import copy
import os
import pickle
import tempfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import dgl
import torch

from tests.dgl.comparable import plain

Question = Callable[[Any], Any]


def ids(g: Any, *values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=g.idtype)


def rows(g: Any) -> dict[str, torch.Tensor]:
    return {"_N": ids(g, 1, 0)}


def some_edges(g: Any) -> torch.Tensor:
    return torch.arange(g.num_edges(), dtype=g.idtype).flip(0)[::3]


def ends(g: Any) -> tuple[torch.Tensor, torch.Tensor]:
    u, v = g.edges(order="eid")
    return u.flip(0)[::3], v.flip(0)[::3]


def no_edge(g: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Two vertices without an edge between them."""
    v = int(g.in_degrees().argmin())
    u = min(set(range(g.num_src_nodes())) - set(g.predecessors(v).tolist()))
    return ids(g, u), ids(g, v)


def mask(g: Any) -> torch.Tensor:
    return torch.arange(g.num_edges()) % 3 == 1


def tags(count: int) -> torch.Tensor:
    return torch.arange(count) % 2


def after(g: Any, change: Any) -> Any:
    """The graph itself, once it was changed in place."""
    return g


def sorted_by_tag(g: Any, sort: Callable[..., Any], **options: Any) -> Any:
    return sort(g, tags(g.num_src_nodes()), **options).adj_tensors("csc")


def simple(g: Any) -> Any:
    """The pairs with their counts, and the pair of each edge: DGL numbers the pairs by a format of
    the graph that it has already."""
    new, pair_of_edge = dgl.to_simple(g, writeback_mapping=True)
    u, v = new.edges(order="eid")
    counts = sorted(zip(u.tolist(), v.tolist(), new.edata["count"].tolist(), strict=True))
    return [counts, u[pair_of_edge.long()], v[pair_of_edge.long()]]


def saved(g: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "graph.bin")
        dgl.save_graphs(path, [g, g], {"label": torch.arange(2)})
        return dgl.load_graphs(path)


def scoped(g: Any) -> Any:
    with g.local_scope():
        g.edata["weight"] = g.edata["weight"] * 2
        g.dstdata["new"] = torch.ones(g.num_dst_nodes())
        inside = plain(g)
    return [inside, g]


def twice(nodes: Any) -> Any:
    return {"twice": nodes.data["feat"] * 2}


def first_positive(nodes: Any) -> Any:
    return nodes.data["feat"][:, 0] > 0


def with_lazy(g: Any, set_features: Callable[[Any, Any], None], names: Any) -> Any:
    set_features(g, names)
    return [sorted(frame) for frame in (*g._node_frames, *g._edge_frames)]


# Methods and properties of DGLGraph.
METHODS: dict[str, Question] = {
    "add_edges": lambda g: after(g, g.add_edges(ids(g, 0), ids(g, 1))),
    "add_nodes": lambda g: after(g, g.add_nodes(2)),
    "add_self_loop": lambda g: g.add_self_loop(),
    "adj": lambda g: g.adj(),
    "adj_external": lambda g: g.adj_external(),
    "adj_external transposed": lambda g: g.adj_external(transpose=True),
    "adj_external scipy coo": lambda g: g.adj_external(scipy_fmt="coo"),
    "adj_external scipy csr": lambda g: g.adj_external(scipy_fmt="csr", transpose=True),
    "adj_tensors coo": lambda g: g.adj_tensors("coo"),
    "adj_tensors csr": lambda g: g.adj_tensors("csr"),
    "adj_tensors csc": lambda g: g.adj_tensors("csc"),
    "adj_tensors all": lambda g: [g.adj_tensors(fmt) for fmt in ("csc", "csr", "coo")],
    "adjacency_matrix": lambda g: g.adjacency_matrix(),
    "apply_nodes": lambda g: after(g, g.apply_nodes(twice, ntype="_N")),
    "all_edges": lambda g: g.all_edges(form="all"),
    "astype": lambda g: g.astype(torch.int64),
    "batch_num_edges": lambda g: g.batch_num_edges(),
    "batch_num_nodes": lambda g: g.batch_num_nodes(),
    "batch_num_nodes type": lambda g: g.batch_num_nodes("_N"),
    "batch_size": lambda g: g.batch_size,
    "canonical_etypes": lambda g: g.canonical_etypes,
    "clone": lambda g: g.clone(),
    "cpu": lambda g: g.cpu(),
    "create_formats_": lambda g: [after(g, g.create_formats_()), g.formats(), g.adj_tensors("csr")],
    "device": lambda g: g.device,
    "dstdata": lambda g: dict(g.dstdata),
    "dstnodes": lambda g: [g.dstnodes(), g.dstnodes("_N"), dict(g.dstnodes["_N"].data)],
    "dsttypes": lambda g: g.dsttypes,
    "edata": lambda g: dict(g.edata),
    "edge_attr_schemes": lambda g: repr(g.edge_attr_schemes()),
    "edge_ids": lambda g: g.edge_ids(*ends(g)),
    "edge_ids all": lambda g: g.edge_ids(*ends(g), return_uv=True),
    "edge_ids missing": lambda g: g.edge_ids(*no_edge(g)),
    "edge_subgraph": lambda g: g.edge_subgraph(some_edges(g)),
    "edge_subgraph mask": lambda g: g.edge_subgraph(mask(g), relabel_nodes=False),
    "edge_subgraph nodes": lambda g: g.edge_subgraph(some_edges(g), relabel_nodes=False),
    "edge_type_subgraph": lambda g: g.edge_type_subgraph(["_E"]),
    "edges": lambda g: g.edges(),
    "edges all": lambda g: [g.edges(form=f, order="eid") for f in ("uv", "eid", "all")],
    "edges sorted": lambda g: [g.edges(form=f, order="srcdst") for f in ("uv", "eid", "all")],
    "edges data": lambda g: [dict(g.edges["_E"].data), dict(g.edges[some_edges(g)].data)],
    "etypes": lambda g: g.etypes,
    "filter_nodes": lambda g: g.filter_nodes(first_positive, ntype="_N"),
    "find_edges": lambda g: g.find_edges(some_edges(g)),
    "find_edges beyond": lambda g: g.find_edges(ids(g, g.num_edges())),
    "formats": lambda g: sorted(chain(*g.formats().values())),
    "formats coo": lambda g: [g.formats("coo"), g.formats("coo").formats()],
    "formats csr": lambda g: [g.formats("csr"), g.formats("csr").adj_tensors("csr")],
    "formats csc": lambda g: [g.formats("csc"), g.formats("csc").adj_tensors("csc")],
    "formats two": lambda g: [g.formats(["coo", "csr"]), g.formats(["csr", "csc"])],
    "get_edge_storage": lambda g: g.get_edge_storage("weight").fetch(some_edges(g), "cpu"),
    "get_etype_id": lambda g: g.get_etype_id("_E"),
    "get_node_storage": lambda g: g.get_node_storage("feat", "_N").fetch(ids(g, 1, 0), "cpu"),
    "get_ntype_id": lambda g: g.get_ntype_id("_N"),
    "get_ntype_id_from_dst": lambda g: g.get_ntype_id_from_dst("_N"),
    "get_ntype_id_from_src": lambda g: g.get_ntype_id_from_src("_N"),
    "global_uniform_negative_sampling": lambda g: g.global_uniform_negative_sampling(9),
    "global_uniform_negative_sampling more": lambda g: [
        g.global_uniform_negative_sampling(9, exclude_self_loops=False, replace=True, redundancy=5),
        g,
    ],
    "has_edges_between": lambda g: [
        g.has_edges_between(*ends(g)),
        g.has_edges_between(ids(g, 0, 1), ids(g, 1, 0)),
    ],
    "has_nodes": lambda g: g.has_nodes(ids(g, 0, 99), "_N"),
    "idtype": lambda g: g.idtype,
    "in_degrees": lambda g: [g.in_degrees(), g.in_degrees(ids(g, 1, 0)), g.in_degrees(1)],
    "in_edges": lambda g: [g.in_edges(ids(g, 1, 0), form=f) for f in ("uv", "eid", "all")],
    "in_subgraph": lambda g: g.in_subgraph(ids(g, 1, 0)),
    "in_subgraph relabeled": lambda g: g.in_subgraph(ids(g, 1), relabel_nodes=True),
    "inc": lambda g: [g.inc("in"), g.inc("out")],
    "inc both": lambda g: g.inc("both"),
    "incidence_matrix": lambda g: g.incidence_matrix("in"),
    "int": lambda g: g.int(),
    "is_block": lambda g: g.is_block,
    "is_homogeneous": lambda g: g.is_homogeneous,
    "is_multigraph": lambda g: g.is_multigraph,
    "is_pinned": lambda g: g.is_pinned(),
    "is_unibipartite": lambda g: g.is_unibipartite,
    "khop_in_subgraph": lambda g: g.khop_in_subgraph(ids(g, 1), 1),
    "khop_out_subgraph": lambda g: g.khop_out_subgraph(ids(g, 1), 1),
    "line_graph": lambda g: g.line_graph(),
    "local_scope": scoped,
    "local_var": lambda g: [after(g.local_var(), g.local_var().edata.pop("weight")), g],
    "long": lambda g: g.long(),
    "materialize_data": lambda g: after(g, g.materialize_data()),
    "metagraph": lambda g: g.metagraph(),
    "ndata": lambda g: dict(g.ndata),
    "node_attr_schemes": lambda g: repr(g.node_attr_schemes("_N")),
    "node_type_subgraph": lambda g: g.node_type_subgraph(["_N"]),
    "nodes": lambda g: g.nodes(),
    "nodes type": lambda g: [g.nodes("_N"), dict(g.nodes["_N"].data)],
    "ntypes": lambda g: g.ntypes,
    "num_dst_nodes": lambda g: [g.num_dst_nodes(), g.num_dst_nodes("_N")],
    "num_edges": lambda g: [g.num_edges(), g.num_edges("_E")],
    "num_nodes": lambda g: [g.num_nodes(), g.num_nodes("_N")],
    "num_src_nodes": lambda g: [g.num_src_nodes(), g.num_src_nodes("_N")],
    "number_of_dst_nodes": lambda g: g.number_of_dst_nodes(),
    "number_of_edges": lambda g: g.number_of_edges(),
    "number_of_nodes": lambda g: g.number_of_nodes(),
    "number_of_src_nodes": lambda g: g.number_of_src_nodes(),
    "out_degrees": lambda g: [g.out_degrees(), g.out_degrees(ids(g, 1, 0)), g.out_degrees(1)],
    "out_edges": lambda g: [g.out_edges(ids(g, 1, 0), form=f) for f in ("uv", "eid", "all")],
    "out_subgraph": lambda g: g.out_subgraph(ids(g, 1, 0)),
    "out_subgraph relabeled": lambda g: g.out_subgraph(ids(g, 1), relabel_nodes=True),
    "predecessors": lambda g: [g.predecessors(0), g.predecessors(1)],
    "remove_edges": lambda g: after(g, g.remove_edges(some_edges(g))),
    "remove_nodes": lambda g: after(g, g.remove_nodes(ids(g, 1), "_N")),
    "remove_self_loop": lambda g: g.remove_self_loop(),
    "reorder_graph": lambda g: g.reorder_graph(node_permute_algo="rcmk"),
    "reverse": lambda g: g.reverse(),
    "reverse with edata": lambda g: dgl.reverse(g, copy_edata=True),
    "sample_etype_neighbors": lambda g: g.sample_etype_neighbors(
        ids(g, 1, 0), [0, g.num_edges()], torch.tensor([2])
    ),
    "sample_labors": lambda g: g.sample_labors(rows(g), 2)[0],
    "sample_neighbors": lambda g: g.sample_neighbors(rows(g), 2),
    "sample_neighbors out": lambda g: g.sample_neighbors(rows(g), 2, edge_dir="out"),
    "sample_neighbors weighted": lambda g: g.sample_neighbors(rows(g), 2, prob="weight"),
    "sample_neighbors excluding": lambda g: g.sample_neighbors(
        rows(g), 3, exclude_edges=some_edges(g), replace=True
    ),
    "sample_neighbors all": lambda g: g.sample_neighbors(rows(g), -1),
    "sample_neighbors_biased": lambda g: dgl.sampling.sample_neighbors_biased(
        dgl.sort_csc_by_tag(g, tags(g.num_src_nodes())), ids(g, 1, 0), 2, torch.tensor([1.0, 2.0])
    ),
    "sample_neighbors_fused": lambda g: g.sample_neighbors_fused(rows(g), 2),
    "select_topk": lambda g: g.select_topk(2, "weight", rows(g)),
    "select_topk out": lambda g: g.select_topk(1, "weight", rows(g), edge_dir="out"),
    "set_batch_num_edges": lambda g: after(g, g.set_batch_num_edges(ids(g, 1, g.num_edges() - 1))),
    "set_batch_num_nodes": lambda g: after(g, g.set_batch_num_nodes({"_N": ids(g, 2, 3)})),
    "set_e_initializer": lambda g: [
        g.set_e_initializer(dgl.init.zero_initializer),
        after(g, g.edges[some_edges(g)].data.update({"x": torch.ones(len(some_edges(g)))})),
    ],
    "set_n_initializer": lambda g: after(
        g, g.set_n_initializer(dgl.init.zero_initializer, ntype="_N")
    ),
    "shared_memory": lambda g: g.shared_memory(f"pygsampler{os.getpid()}_{id(g)}"),
    "srcdata": lambda g: dict(g.srcdata),
    "srcnodes": lambda g: [g.srcnodes(), g.srcnodes("_N"), dict(g.srcnodes["_N"].data)],
    "srctypes": lambda g: g.srctypes,
    "subgraph": lambda g: g.subgraph(ids(g, 1, 0)),
    "successors": lambda g: [g.successors(0), g.successors(1)],
    "to": lambda g: g.to("cpu"),
    "to_canonical_etype": lambda g: g.to_canonical_etype("_E"),
    "to_cugraph": lambda g: g.to_cugraph(),
    "to_networkx": lambda g: g.to_networkx(),
    "to_networkx data": lambda g: dgl.to_networkx(g.local_var(), edge_attrs=["weight"]),
    "to_simple": lambda g: g.to_simple(),
    "to_simple mapping": lambda g: g.to_simple(return_counts="n", writeback_mapping=True),
    "__getitem__": lambda g: g["_N", "_E", "_N"],
    "__repr__": lambda g: repr(g),
    "__copy__": lambda g: copy.copy(g),
    "__deepcopy__": lambda g: copy.deepcopy(g),
    "__getstate__": lambda g: pickle.loads(pickle.dumps(g)),
}

# Functions of dgl and of dgl.sampling that are not methods too.
FUNCTIONS: dict[str, Question] = {
    "add_reverse_edges": lambda g: dgl.add_reverse_edges(g),
    "add_reverse_edges bipartite": lambda g: dgl.add_reverse_edges(
        g, copy_edata=True, ignore_bipartite=True
    ),
    "adj_product_graph": lambda g: dgl.adj_product_graph(dgl.reverse(g), g, "weight"),
    "adj_sum_graph": lambda g: dgl.adj_sum_graph([g, g], "weight"),
    "adjusted_homophily": lambda g: dgl.adjusted_homophily(g, tags(g.num_src_nodes())),
    "batch": lambda g: dgl.batch([g, g]),
    "bfs_edges_generator": lambda g: dgl.bfs_edges_generator(g, 0),
    "bfs_nodes_generator": lambda g: dgl.bfs_nodes_generator(g, 0),
    "block_to_graph": lambda g: dgl.block_to_graph(g),
    "broadcast_nodes": lambda g: dgl.broadcast_nodes(g, torch.ones(1, 2), ntype="_N"),
    "compact_graphs": lambda g: dgl.compact_graphs(g),
    "dfs_edges_generator": lambda g: dgl.dfs_edges_generator(g, [0]),
    "dfs_labeled_edges_generator": lambda g: dgl.dfs_labeled_edges_generator(g, [0]),
    "double_radius_node_labeling": lambda g: dgl.double_radius_node_labeling(g, 0, 1),
    "edge_homophily": lambda g: dgl.edge_homophily(g, tags(g.num_src_nodes())),
    "edge_label_informativeness": lambda g: dgl.edge_label_informativeness(
        g, tags(g.num_src_nodes())
    ),
    "khop_adj": lambda g: dgl.khop_adj(g, 1),
    "khop_graph": lambda g: dgl.khop_graph(g, 1),
    "lap_pe": lambda g: dgl.lap_pe(g, 1),
    "laplacian_lambda_max": lambda g: dgl.laplacian_lambda_max(g),
    "laplacian_pe": lambda g: dgl.laplacian_pe(g, 1),
    "linkx_homophily": lambda g: dgl.linkx_homophily(g, tags(g.num_src_nodes())),
    "load_graphs": saved,
    "max_edges": lambda g: dgl.max_edges(g, "weight"),
    "max_nodes": lambda g: dgl.max_nodes(g, "feat", ntype="_N"),
    "mean_edges": lambda g: dgl.mean_edges(g, "weight"),
    "mean_nodes": lambda g: dgl.mean_nodes(g, "feat", ntype="_N"),
    "merge": lambda g: dgl.merge([g, g]),
    "metapath_reachable_graph": lambda g: dgl.metapath_reachable_graph(g, ["_E"]),
    "node2vec_random_walk": lambda g: dgl.sampling.node2vec_random_walk(g, ids(g, 0, 1), 1, 1, 2),
    "node_homophily": lambda g: dgl.node_homophily(g, tags(g.num_src_nodes())),
    "node_label_informativeness": lambda g: dgl.node_label_informativeness(
        g, tags(g.num_src_nodes())
    ),
    "node_subgraph": lambda g: dgl.node_subgraph(g, {"_N": ids(g, 1, 0)}),
    "norm_by_dst": lambda g: dgl.norm_by_dst(g),
    "random_walk": lambda g: dgl.sampling.random_walk(g, ids(g, 0, 1), length=2),
    "random_walk metapath": lambda g: dgl.sampling.random_walk(
        g, ids(g, 0, 1), metapath=["_E"], return_eids=True
    ),
    "random_walk_pe": lambda g: dgl.random_walk_pe(g, 2),
    "readout_edges": lambda g: dgl.readout_edges(g, "weight", op="min"),
    "readout_nodes": lambda g: dgl.readout_nodes(g, "feat", op="min", ntype="_N"),
    "set_dst_lazy_features": lambda g: with_lazy(g, dgl.set_dst_lazy_features, ["lazy"]),
    "set_edge_lazy_features": lambda g: with_lazy(g, dgl.set_edge_lazy_features, ["lazy"]),
    "set_node_lazy_features": lambda g: with_lazy(g, dgl.set_node_lazy_features, {"_N": ["lazy"]}),
    "set_src_lazy_features": lambda g: with_lazy(g, dgl.set_src_lazy_features, ["lazy"]),
    "shortest_dist": lambda g: dgl.shortest_dist(g, 0),
    "slice_batch": lambda g: dgl.slice_batch(g, 0),
    "slice_batch of two": lambda g: dgl.slice_batch(dgl.batch([g, g]), 1),
    "softmax_nodes": lambda g: dgl.softmax_nodes(g, "feat", ntype="_N"),
    "sort_csc_by_tag": lambda g: sorted_by_tag(g, dgl.sort_csc_by_tag),
    "sort_csc_by_tag edges": lambda g: dgl.sort_csc_by_tag(
        g, tags(g.num_edges()), tag_type="edge"
    ).adj_tensors("csc"),
    "sort_csr_by_tag": lambda g: dgl.sort_csr_by_tag(g, tags(g.num_dst_nodes())).adj_tensors("csr"),
    "sort_csr_by_tag edges": lambda g: dgl.sort_csr_by_tag(
        g, tags(g.num_edges()), tag_type="edge"
    ).adj_tensors("csr"),
    "sum_nodes": lambda g: dgl.sum_nodes(g, "feat", ntype="_N"),
    "svd_pe": lambda g: dgl.svd_pe(g, 1),
    "to_bfloat16": lambda g: dgl.to_bfloat16(g),
    "to_bidirected": lambda g: dgl.to_bidirected(g),
    "to_block": lambda g: dgl.to_block(g),
    "to_block of dst": lambda g: dgl.to_block(g, ids(g, 1, 0)),
    "to_double": lambda g: dgl.to_double(g),
    "to_float": lambda g: dgl.to_float(g),
    "to_half": lambda g: dgl.to_half(g),
    "to_heterogeneous": lambda g: dgl.to_heterogeneous(g, ["_N"], ["_E"]),
    "to_homogeneous": lambda g: dgl.to_homogeneous(g),
    "to_homogeneous with data": lambda g: dgl.to_homogeneous(
        g, ndata=["feat"], edata=["weight"], return_count=True
    ),
    "to_simple_graph": lambda g: dgl.to_simple_graph(g),
    "topk_nodes": lambda g: dgl.topk_nodes(g, "feat", 1, ntype="_N"),
    "topological_nodes_generator": lambda g: dgl.topological_nodes_generator(g),
    "unbatch": lambda g: dgl.unbatch(g),
    "unbatch of two": lambda g: dgl.unbatch(dgl.batch([g, g])),
}

# Questions to the graph that dgl.block_to_graph creates from a block; DGL refuses most on blocks.
OF_GRAPHS: dict[str, Question] = {
    "add_reverse_edges": lambda g: dgl.add_reverse_edges(g, ignore_bipartite=True),
    "adj_external": lambda g: g.adj_external(),
    "batch": lambda g: dgl.batch([g, g]),
    "compact_graphs": lambda g: dgl.compact_graphs(g),
    "edge_subgraph": lambda g: dgl.edge_subgraph(g, some_edges(g)),
    "in_subgraph": lambda g: dgl.in_subgraph(g, {"_N_dst": ids(g, 1, 0)}),
    "khop_in_subgraph": lambda g: dgl.khop_in_subgraph(g, {"_N_dst": ids(g, 1)}, 1),
    "line_graph": lambda g: dgl.line_graph(dgl.to_homogeneous(g)),
    "load_graphs": saved,
    "merge": lambda g: dgl.merge([g, g]),
    "node_subgraph": lambda g: dgl.node_subgraph(g, {"_N_src": ids(g, 1), "_N_dst": ids(g, 0)}),
    "out_subgraph": lambda g: dgl.out_subgraph(g, {"_N_src": ids(g, 1, 0)}),
    "reverse": lambda g: dgl.reverse(g, copy_edata=True),
    "sample_neighbors": lambda g: dgl.sampling.sample_neighbors(g, {"_N_dst": ids(g, 1, 0)}, 2),
    "to_block": lambda g: dgl.to_block(g),
    "to_simple": simple,
    "unbatch": lambda g: dgl.unbatch(dgl.batch([g, g])),
}
