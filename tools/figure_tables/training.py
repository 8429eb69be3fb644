"""Training steps on a GPU."""

from __future__ import annotations

from figure_tables.record import NONE_OF_GPU, Record, figure, source, table, unmeasured


@figure("gpu/training.json", NONE_OF_GPU)
def gpu_training(record: Record) -> str:
    """GraphSAGE: a step, and how much of it waits for a sample."""
    rows = [
        [
            row["name"],
            f"{row['step_us']:.0f}",
            f"{row['wait_us']:.0f}",
            f"{100 * row['wait_share']:.1f} %",
            f"{row['free_step_us']:.0f}",
        ]
        for row in record["rows"]
    ]
    head = ["batches", "a step, us", "of it waiting for a sample, us", "share"]
    head += ["a step of a loop that never waits for the GPU, us"]
    return f"{source(record)}\n{table(head, rows, 4)}"


@figure("gpu/steps.json", NONE_OF_GPU)
def gpu_steps(record: Record) -> str:
    """Whole training steps, in each way."""
    about = record["model"]
    rows = []
    for row in record["rows"]:
        fanouts = ",".join(map(str, row["fanouts"]))
        others = row["dgl_ms"]
        ratio = "" if others is None else f"{others / row['graph_ms']:.1f}x"
        rows.append(
            [f"{row['model']} {row['batch']}x({fanouts})"]
            + ["" if others is None else f"{others:.1f}"]
            + [f"{row[key]:.2f}" for key in ("plain_ms", "helpers_ms", "graph_ms")]
            + [f"{row['graph_tf32_ms']:.2f}", ratio]
        )
    head = ["", "DGL 2.5", "plain PyTorch", "helpers", "one graph", "with TF32", "DGL / graph"]
    return (
        f"Milliseconds a step, {about['features']} features, {about['hidden']} hidden, "
        f"{about['classes']} classes, {about['heads']} heads, {about['optimizer']}; a graph with "
        f"the size of {about['graph']}. All of it is on the GPU. Plain PyTorch and the helpers are "
        "eager, with our loader; DGL's figures were measured on the same kind of GPU with its own "
        f"loader, sampler and layers. {source(record)}\n{table(head, rows, 6)}"
    )


@figure("gpu/pyg_steps.json", NONE_OF_GPU)
def gpu_pyg_steps(record: Record) -> str:
    """Whole training steps of PyG's own layers."""
    keys = ("eager_ms", "eager_tf32_ms", "graph_ms", "graph_tf32_ms")
    rows = []
    for row in record["rows"]:
        others = row["dgl_ms"]
        rows.append(
            [f"{row['layer']} {row['batch']}x({','.join(map(str, row['fanouts']))})"]
            + [f"`{row['edges']}`", "" if others is None else f"{others:.1f}"]
            + [f"{row[key]:.2f}" for key in keys]
            + ["" if others is None else f"{others / row['graph_ms']:.1f}x"]
        )
    head = ["", "edges", "DGL 2.5", "eager", "eager, TF32", "one graph", "one graph, TF32"]
    text = table([*head, "DGL / graph"], rows, 6)
    return f"{source(record)}\n{text}"


@figure("gpu/rgcn.json", unmeasured("python -m benchmarks.gpu rgcn --out FOLDER"))
def gpu_rgcn(record: Record) -> str:
    """R-GCN's steps: milliseconds with batches of the GPU, and of the CPU."""
    names = ("loader_ms", "step_ms", "cpu_loader_ms", "cpu_step_ms")
    rows = [
        [row["model"], f"{row['relations']}", *(f"{row[name]:.2f}" for name in names)]
        for row in record["rows"]
    ]
    head = ["model", "types of edges", "loader, ms", "step, ms", "by the CPU: loader, ms"]
    return f"{source(record)}\n{table([*head, 'step, ms'], rows, 5)}"


@figure("gpu/rgat.json", unmeasured("python -m benchmarks.rgat --out FOLDER"))
def gpu_rgat(record: Record) -> str:
    """R-GAT in the shape of MLPerf's benchmark: steps, what they wait for, memory."""
    theirs = record["model"]["mlperf_seeds_per_second_per_gpu"]
    rows = []
    for row in record["rows"]:
        rate = row["seeds_per_second_per_gpu"]
        cells = [f"{row['gpus']}", f"{row['batch']:,}", f"{row['input_nodes'] / 1e6:.2f}"]
        cells += [f"{row[key]:.1f}" for key in ("eager_ms", "step_ms")]
        cells += [f"{rate:,.0f}", f"{rate / theirs:.2f}"]
        cells += [f"{row['sampling_ms']:.2f}", f"{row['loader_ms']:.1f}"]
        cells += [f"{row['engine_gb']:.0f} + {row['torch_gb']:.0f}", f"{row['watts']:.0f}"]
        rows.append(cells)
    head = ["GPUs", "seeds a GPU", "million nodes", "eager step, ms", "captured, ms"]
    head += ["seeds/s a GPU", "times MLPerf's", "sampling, ms", "with rows, ms"]
    head += ["GB: graph and rows + torch", "W"]
    return f"{source(record)}\n{table(head, rows, len(head))}"
