"""``python -m pygsampler quickstart``."""

from __future__ import annotations

import difflib
import sys
import time
from pathlib import Path

import click


@click.command(short_help="Train a GraphSAGE on the packages of Debian.")
@click.option("--epochs", type=click.IntRange(1), default=8, show_default=True)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="The same seed gives the same result.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default="pygsampler-quickstart.png",
    show_default=True,
    help="The file of the picture; the suffix chooses the format.",
)
@click.option(
    "--package",
    default="python3-numpy",
    show_default=True,
    help="The package whose neighborhood is drawn.",
)
@click.option(
    "--threads",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Threads of torch; the sampler uses the other cores.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(epochs: int, seed: int, out: Path, package: str, threads: int, as_json: bool) -> None:
    """Train a GraphSAGE on the packages of Debian, next to an MLP that sees no edges.

    Everything is part of pygsampler, nothing is downloaded. It takes about 15 seconds on two
    cores and leaves a picture.
    """
    # Late, so that --help is at once and wrong options are told before torch is imported.
    from pygsampler._cli import output
    from pygsampler._cli.atomic_file import atomic_write
    from pygsampler.datasets import debian
    from pygsampler.quickstart.neighborhood import sample_neighbourhood
    from pygsampler.quickstart.picture import check_format, draw
    from pygsampler.quickstart.training import run

    start = time.perf_counter()
    data = debian()
    if package not in data.names:
        close = difflib.get_close_matches(package, data.names, n=3)
        hint = f"; near to it: {', '.join(close)}" if close else ""
        raise click.BadParameter(
            f"expected the name of a package of Debian 12, got {package!r}{hint}",
            param_hint="--package",
        )
    try:
        check_format(out)
        out.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--out") from None

    graph = data.graph()
    shown = output.console()
    if not as_json:
        output.title(
            shown,
            f"{data.title}: {data.num_nodes:,} packages, {data.num_edges:,} relations, "
            f"{data.num_classes} sections",
        )
    bars = sys.stderr.isatty()
    result = run(data, graph, epochs=epochs, seed=seed, threads=threads, progress=bars)
    around = sample_neighbourhood(data, graph, package, seed=seed)
    with atomic_write(out) as temporary:
        draw(result, data, around, temporary)

    sage, mlp = result.sage, result.mlp
    seconds = time.perf_counter() - start
    if as_json:
        output.write_json(
            {
                "data": data.title,
                "nodes": data.num_nodes,
                "relations": data.num_edges,
                "epochs": epochs,
                "seed": seed,
                "test_accuracy": {"graphsage": sage.test, "mlp": mlp.test},
                "validation": {"graphsage": sage.validation, "mlp": mlp.validation},
                "sampled_edges": sage.num_edges,
                "training_seconds": sage.seconds,
                "sampler_edges_per_second": result.edges_per_second,
                "picture": str(out.resolve()),
                "seconds": seconds,
            }
        )
        return
    output.facts(
        shown,
        (
            ("test accuracy", f"GraphSAGE {sage.test:.1%}, MLP without edges {mlp.test:.1%}"),
            (
                "sampled edges",
                f"{sage.num_edges:,} in training, "
                f"{sage.num_edges / sage.seconds / 1e6:.2f} million a second with the model, "
                f"{result.edges_per_second / 1e6:.1f} million by the sampler alone",
            ),
            ("picture", str(out.resolve())),
            ("time", f"{seconds:.1f} s"),
        ),
    )
