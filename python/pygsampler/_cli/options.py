"""Arguments that several commands take, and the graph that they name."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph
    from pygsampler._sampling.sampler import Sampler

F = TypeVar("F", bound=Callable[..., Any])

# Data sets that come with the package; a file of that name is meant before it.
BUILT_IN = ("debian",)


def _fanouts(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\s*(-1|\d{1,9})(\s*,\s*(-1|\d{1,9}))*\s*", value):
        raise click.BadParameter(f"expected numbers from -1 up like 10,10, got {value!r}")
    return tuple(int(part) for part in value.split(","))


def fanouts(default: str) -> Callable[[F], F]:
    """``--fanouts``."""
    return click.option(
        "--fanouts",
        callback=_fanouts,
        default=default,
        show_default=True,
        metavar="N,...",
        help="Neighbors for each node, outermost hop first; -1 takes all.",
    )


def as_json(command: F) -> F:
    """``--json``."""
    option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    return option(command)


def device(command: F) -> F:
    """``--device``."""
    option = click.option(
        "--device",
        default="cpu",
        show_default=True,
        metavar="cpu|cuda|cuda:N",
        help="The device that samples.",
    )
    return option(command)


def picture(what: str) -> Callable[[F], F]:
    """``--plot``."""
    return click.option(
        "--plot",
        type=click.Path(dir_okay=False, writable=True, path_type=Path),
        metavar="OUT.png",
        help=f"{what}; the suffix chooses the format.",
    )


def is_built_in(name: str) -> bool:
    """True if ``name`` means a data set of the package, and no file."""
    return name in BUILT_IN and not Path(name).exists()


def open_graph(name: str) -> Graph:
    """Returns the graph of a file, or of a data set that comes with the package."""
    from pygsampler._graph.graph import Graph

    if is_built_in(name):
        from pygsampler.datasets import debian

        return debian().graph()
    return Graph.open(name)


def node_type_of(graph: Graph, node_type: str | None) -> str | None:
    """The type of seeds, which ``--node-type`` says where the graph has several; None without."""
    kinds = graph.node_types
    if graph.is_homogeneous:
        if node_type is not None:
            raise click.BadParameter(
                f"expected none for a homogeneous graph, got {node_type!r}",
                param_hint="--node-type",
            )
        return None
    if node_type is None and len(kinds) == 1:
        return kinds[0]
    if node_type not in kinds:
        listed = ", ".join(kinds)
        raise click.BadParameter(
            f"expected the type of the seeds, one of {listed}, got {node_type or 'none'}",
            param_hint="--node-type",
        )
    return node_type


def relation_of(graph: Graph, text: str) -> tuple[str, str, str]:
    """The edge type that a text names: a relation, or source:relation:destination."""
    found = [kind for kind in graph.edge_types if text in (kind[1], ":".join(kind))]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(":".join(kind) for kind in found or graph.edge_types)
    raise click.BadParameter(f"expected one of {listed}, got {text!r}", param_hint="--metapath")


def node_type(command: F) -> F:
    """``--node-type``."""
    option = click.option(
        "--node-type", metavar="TYPE", help="The node type of the seeds, if there are several."
    )
    return option(command)


@contextmanager
def batches_of(
    graph: Any,
    sampler: Any,
    kind: str | None,
    seeds: Sequence[int],
    size: int,
    epoch: int,
    shuffle: bool = False,
    seed_time: Any = None,
) -> Iterator[Iterator[Any]]:
    """Batches of seeds of one type, or of a graph without types, as ``batches`` has them.

    ``seed_time`` is one time for all seeds.
    """
    if kind is None and seed_time is None:
        with batches(graph, sampler, seeds, size, epoch, shuffle) as found:
            yield found
        return
    from pygsampler._arrays.array import Array
    from pygsampler._arrays.ids import as_ids
    from pygsampler._engine import library
    from pygsampler._loader.prefetch import prefetch_in_order
    from pygsampler._loader.stream import MOST_ON_GPU, _shuffled

    ids = Array._of_view(as_ids(array("q", seeds), "seeds"))
    if shuffle:
        ids = _shuffled(ids, len(ids), sampler.seed, epoch)
    depth = MOST_ON_GPU if graph.device != "cpu" else 2 * library.get_num_threads()
    more = {} if seed_time is None else {"seed_time": seed_time}

    def submit(step: int) -> Any:
        part = ids[step * size : min((step + 1) * size, len(ids))]
        given = part if kind is None else {kind: part}
        return sampler.submit(graph, given, epoch=epoch, batch=step, threads=1, **more)

    with closing(prefetch_in_order(submit, -(-len(ids) // size), depth)) as of_type:
        yield of_type


@contextmanager
def batches(
    graph: Graph,
    sampler: Sampler[Any],
    seeds: Sequence[int],
    size: int,
    epoch: int,
    shuffle: bool = False,
) -> Iterator[Iterator[Any]]:
    """Batches in order, some of them in flight: memory is that of those."""
    from pygsampler._engine import library
    from pygsampler._loader.stream import MOST_ON_GPU, stream

    depth = MOST_ON_GPU if graph.device != "cpu" else 2 * library.get_num_threads()
    chosen = None if seeds == range(graph.num_nodes) else seeds
    found = stream(
        graph, sampler, chosen, batch_size=size, shuffle=shuffle, epoch=epoch, prefetch=depth
    )
    with closing(found):
        yield found


def check_output(out: Path, suffixes: Sequence[str], read: Mapping[str, str]) -> None:
    """Refuses an ``--out`` that cannot be written, or that is one of the files to be read.

    ``read`` has these by the names of their arguments.
    """
    if out.suffix not in suffixes:
        raise click.BadParameter(
            f"expected a suffix of {', '.join(suffixes)}, got {str(out)!r}", param_hint="--out"
        )
    if not out.parent.is_dir():
        raise click.BadParameter(f"{out.parent}: no such folder", param_hint="--out")
    for name, path in read.items():
        if out.exists() and os.path.exists(path) and out.samefile(path):
            raise click.BadParameter(
                f"expected another file than {name}, got {str(out)!r}", param_hint="--out"
            )


def check_picture(path: Path | None) -> None:
    """Refuses a picture that cannot be written, before any work is done for it."""
    if path is None:
        return
    from pygsampler.quickstart.picture import check_format

    try:
        check_format(path)
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--plot") from None
