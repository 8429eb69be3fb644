"""``install``: our classes under the names that PyG and DGL have for theirs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

__all__ = ["Installation", "install", "uninstall"]


class Framework(NamedTuple):
    """A framework, the versions that are tested, and the names that stand for ours."""

    title: str
    distribution: str
    package: str
    adapter: str
    # The parts of versions that were tested: (2, 5) is every 2.5.x.
    versions: frozenset[tuple[int, ...]]
    # The names of each module of the framework that the adapter has, too.
    names: Mapping[str, Sequence[str]]
    # Names that the adapter has in a module of its own, by module and name.
    elsewhere: Mapping[tuple[str, str], str] = {}
    # Modules that use what is inside of the framework's own classes.
    internal: tuple[str, ...] = ()


FRAMEWORKS = {
    "pyg": Framework(
        title="PyG",
        distribution="torch-geometric",
        package="torch_geometric",
        adapter="pygsampler.pyg",
        versions=frozenset({(2, 5), (2, 6), (2, 7), (2, 8)}),
        names={
            "torch_geometric.loader": (
                "ClusterData",
                "ClusterLoader",
                "GraphSAINTEdgeSampler",
                "GraphSAINTNodeSampler",
                "GraphSAINTRandomWalkSampler",
                "HGTLoader",
                "LinkNeighborLoader",
                "NeighborLoader",
                "ShaDowKHopSampler",
            ),
            "torch_geometric.sampler": (
                "BidirectionalNeighborSampler",
                "HGTSampler",
                "NeighborSampler",
            ),
            "torch_geometric.nn": ("MetaPath2Vec", "Node2Vec"),
        },
        # An older loader, whose name PyG's sampler has, too.
        elsewhere={("torch_geometric.loader", "NeighborSampler"): "pygsampler.pyg.loader"},
        internal=("torch_geometric.distributed",),
    ),
    "dgl": Framework(
        title="DGL",
        distribution="dgl",
        package="dgl",
        adapter="pygsampler.dgl",
        versions=frozenset({(1, 1, 3), (2, 1, 0)}),
        names={
            "dgl.dataloading": (
                "ClusterGCNSampler",
                "LaborSampler",
                "MultiLayerFullNeighborSampler",
                "MultiLayerNeighborSampler",
                "NeighborSampler",
                "SAINTSampler",
                "ShaDowKHopSampler",
            ),
            "dgl.sampling": (
                "PinSAGESampler",
                "RandomWalkNeighborSampler",
                "node2vec_random_walk",
                "pack_traces",
                "random_walk",
            ),
        },
    ),
}


class _Replacement(NamedTuple):
    """An attribute of a module, what it was, and what it is."""

    module: str
    name: str
    before: Any
    after: Any


# By the keys of FRAMEWORKS.
_replaced: dict[str, list[_Replacement]] = {}


class Installation:
    """A report of what `install` replaced; as text a table of the names.

    Attributes
    ----------
    replaced : dict of str to str
        The names of PyG and DGL, and for each the name of ours that it stands for now.
    skipped : dict of str to str
        Frameworks that were left as they are, and why.
    imported_before : tuple of str
        Names in other modules that had been imported before, and still mean the framework's own
        class: ``"module.name"``.
    """

    def __init__(
        self,
        replaced: Mapping[str, str],
        skipped: Mapping[str, str],
        imported_before: Sequence[str],
    ) -> None:
        self.replaced = dict(replaced)
        self.skipped = dict(skipped)
        self.imported_before = tuple(imported_before)

    def __repr__(self) -> str:
        width = max(map(len, self.replaced), default=0)
        lines = [f"{name:{width}}  {ours}" for name, ours in self.replaced.items()]
        lines += [f"{name}: {why}" for name, why in self.skipped.items()]
        lines += [
            f"{name}: imported before, still the framework's own" for name in self.imported_before
        ]
        return "\n".join(lines)


def install(*frameworks: str) -> Installation:
    """Puts our samplers, loaders and walks under the names that PyG and DGL have for theirs.

    A script that imports ``torch_geometric.loader.NeighborLoader`` or
    ``dgl.dataloading.NeighborSampler`` afterwards gets ours, which take the same arguments. Call it
    before the imports of the script, or run the script by ``python -m pygsampler run script.py``.
    A second call changes nothing more. `uninstall` puts the framework's own classes back.

    Parameters
    ----------
    *frameworks : str
        ``"pyg"``, ``"dgl"``; by default each that is installed.

    Returns
    -------
    Installation
        The names that were replaced, and the names that were not. Names that other modules had
        imported before are logged as a warning, too.

    Raises
    ------
    ValueError
        For another framework.
    ImportError
        For a framework that is not installed, or whose version is not among the tested ones; then
        nothing is replaced.
    """
    for name in frameworks:
        if name not in FRAMEWORKS:
            raise ValueError(f"install: expected one of {', '.join(FRAMEWORKS)}, got {name!r}")
    skipped, chosen = {}, []
    for key in frameworks or FRAMEWORKS:
        problem = _missing(FRAMEWORKS[key])
        if problem is None:
            chosen.append(key)
        elif frameworks:
            raise ImportError(f"install: {problem}")
        else:
            skipped[FRAMEWORKS[key].title] = problem
    if not chosen:
        raise ImportError(f"install: {'; '.join(skipped.values())}")
    for key in chosen:
        _check_version(FRAMEWORKS[key], frameworks)
    # All of them before the first is replaced: an import that fails leaves things as they were.
    found = {key: _replacements(FRAMEWORKS[key]) for key in chosen if key not in _replaced}
    for key, replacements in found.items():
        for each in replacements:
            setattr(sys.modules[each.module], each.name, each.after)
        _replaced[key] = replacements
    replaced, imported = {}, []
    for key in chosen:
        names = set(_names(FRAMEWORKS[key]))
        for each in _replaced[key]:
            if (each.module, each.name) in names:
                ours = f"{each.after.__module__}.{each.after.__qualname__}"
                replaced[f"{each.module}.{each.name}"] = ours
        imported += _imported_before(FRAMEWORKS[key], _replaced[key])
    if imported:
        logging.getLogger("pygsampler").warning(
            "install: %s: imported before, and still the framework's own; call install() before "
            "these imports",
            ", ".join(imported),
        )
    return Installation(replaced, skipped, imported)


def uninstall() -> None:
    """Puts the classes and functions of PyG and DGL back that `install` replaced.

    An attribute that was assigned since is left as it is. Objects that were created in between stay
    what they are.
    """
    for replacements in _replaced.values():
        for each in replacements:
            module = sys.modules.get(each.module)
            if module is not None and vars(module).get(each.name) is each.after:
                setattr(module, each.name, each.before)
    _replaced.clear()


def _missing(framework: Framework) -> str | None:
    """Returns why a framework cannot be used, or None."""
    try:
        import_module(framework.package)
    except ImportError as error:
        return f"expected {framework.title}, found none that imports ({error})"
    return None


def _check_version(framework: Framework, named: Sequence[str]) -> None:
    try:
        found = version(framework.distribution)
    except PackageNotFoundError:
        found = str(getattr(sys.modules[framework.package], "__version__", "unknown"))
    numbers = tuple(int(part) for part in found.split("+")[0].split(".") if part.isdigit())
    if any(numbers[: len(tested)] == tested for tested in framework.versions):
        return
    tested = ", ".join(".".join(map(str, each)) for each in sorted(framework.versions))
    others = [f'"{key}"' for key, each in FRAMEWORKS.items() if each is not framework]
    hint = "" if named else f", or name the other framework: install({', '.join(others)})"
    raise ImportError(
        f"install: expected {framework.title} {tested}, which are tested, got {found}; import the "
        f"classes of {framework.adapter} by their own names{hint}"
    )


def _replacements(framework: Framework) -> list[_Replacement]:
    """Returns each attribute of the framework's modules that is one of the replaced classes."""
    ours: dict[int, Any] = {}
    for module, name in _names(framework):
        home = framework.elsewhere.get((module, name), framework.adapter)
        # A version may lack some.
        if hasattr(import_module(module), name):
            ours[id(getattr(import_module(module), name))] = getattr(import_module(home), name)
    return [
        _Replacement(key, name, value, ours[id(value)])
        for key, module in list(sys.modules.items())
        if _is_within(key, framework.package) and not key.startswith(framework.internal)
        for name, value in list(vars(module).items())
        if id(value) in ours
    ]


def _names(framework: Framework) -> Iterator[tuple[str, str]]:
    """Yields the public names that stand for ours: modules of the framework, and names in them."""
    for module, names in framework.names.items():
        yield from ((module, name) for name in names)
    yield from framework.elsewhere


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def _imported_before(framework: Framework, replacements: Sequence[_Replacement]) -> list[str]:
    """Returns names of the replaced classes in modules of neither the framework nor ours."""
    before = {id(each.before) for each in replacements}
    own = framework.package, "pygsampler"
    return [
        f"{key}.{name}"
        for key, module in list(sys.modules.items())
        if key.partition(".")[0] not in own
        for name, value in list(getattr(module, "__dict__", {}).items())
        if id(value) in before
    ]
