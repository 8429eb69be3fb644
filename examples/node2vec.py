"""node2vec on the Debian graph: packages that are used together come to lie together.

Walks of node2vec become pairs of packages that are near each other, and negatives beside them; an
embedding learns to tell the one from the other (Grover and Leskovec, 2016). It sees no section and
no word, only who names whom. Then the sections are known by their neighbors in it, and a picture
shows the packages of some sections as t-SNE lays them out.

    python examples/node2vec.py [--picture node2vec.png] [--p 1] [--q 0.5] [--device cuda]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch
from torch.nn import functional

import pygsampler as pgs
from pygsampler.torch import DataLoader, skip_gram

# Sections with enough packages to be seen, and in words of everyday.
SHOWN = {
    "perl": "Perl",
    "python": "Python",
    "ruby": "Ruby",
    "haskell": "Haskell",
    "golang": "Go",
    "rust": "Rust",
    "javascript": "JavaScript",
    "java": "Java",
    "gnu-r": "R",
    "ocaml": "OCaml",
    "localization": "translations",
    "kde": "KDE",
    "games": "games",
    "gnustep": "GNUstep",
    "lisp": "Lisp",
    "php": "PHP",
}
EACH = 120  # packages of a section in the picture
INK = "#1f2937"


def embed(
    graph: pgs.Graph,
    *,
    p: float = 1.0,
    q: float = 0.5,
    size: int = 32,
    epochs: int = 5,
    device: str = "cpu",
) -> torch.Tensor:
    """A row of unit length for each node: float32 [num_nodes, size], on the CPU."""
    torch.manual_seed(0)
    nodes = torch.arange(graph.num_nodes)
    walks = pgs.walks.Node2Vec(8, p=p, q=q, walks_per_seed=1, seed=0)
    loader = DataLoader(graph, nodes, walks, batch_size=1024, shuffle=True, device=device)
    centres, contexts = (
        torch.nn.Embedding(graph.num_nodes, size, device=loader.device) for _ in range(2)
    )
    torch.nn.init.normal_(centres.weight, std=0.1)
    torch.nn.init.zeros_(contexts.weight)
    optimizer = torch.optim.Adam([centres.weight, contexts.weight], lr=0.02)
    for epoch in range(epochs):
        begin, total = time.perf_counter(), torch.zeros((), device=loader.device)
        for batch in loader:
            pairs = skip_gram(loader.graph, batch, 2, negatives=3)
            x = centres(pairs.centres)
            near = (x * contexts(pairs.contexts)).sum(1)
            far = torch.einsum("pd,pkd->pk", x, contexts(pairs.negatives))
            loss = functional.softplus(-near).mean() + functional.softplus(far).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        seconds = time.perf_counter() - begin
        print(f"epoch {epoch}: loss {total.item() / len(loader):.3f}, {seconds:.1f} s", flush=True)
    return functional.normalize(centres.weight.detach().cpu(), dim=1)


def accuracy(z: torch.Tensor, data: Any) -> float:
    """Returns how often the ten nearest training packages have a validation package's section."""
    train, val, labels = (torch.from_numpy(a) for a in (data.train, data.val, data.labels))
    near = (z[val] @ z[train].t()).topk(10)
    votes = torch.zeros(len(val), data.num_classes)
    votes.scatter_add_(1, labels[train][near.indices], near.values)
    return float((votes.argmax(1) == labels[val]).float().mean())


def laid_out(z: torch.Tensor, *, perplexity: float = 25.0, steps: int = 300) -> torch.Tensor:
    """t-SNE of rows of unit length, by all pairs (van der Maaten and Hinton, 2008): [rows, 2]."""
    distances = (2 - 2 * z @ z.t()).clamp_(min=0)
    itself = torch.eye(len(z), dtype=torch.bool)
    # Each row's width gives it so many neighbors: found by halving, for all rows at once.
    low, high = torch.zeros(len(z), 1), torch.full((len(z), 1), 1e4)
    for _ in range(40):
        width = (low + high) / 2
        near = (-distances * width).masked_fill(itself, -torch.inf).softmax(1)
        many = near.clamp(min=1e-30).log().mul(near).sum(1, keepdim=True).neg().exp() > perplexity
        low, high = torch.where(many, width, low), torch.where(many, high, width)
    near = (near + near.t()) / (2 * len(z))
    _, _, axes = torch.pca_lowrank(z, 2)
    y = 1e-2 * (z @ axes)
    velocity, gain = torch.zeros_like(y), torch.ones_like(y)
    for step in range(steps):
        flat = 1 / (1 + torch.cdist(y, y, compute_mode="donot_use_mm_for_euclid_dist").square())
        flat.masked_fill_(itself, 0)
        # Stronger at first, so that clusters form before they are apart.
        pull = ((12.0 if step < 100 else 1.0) * near - flat / flat.sum()).mul_(flat)
        gradient = 4 * (pull.sum(1, keepdim=True) * y - pull @ y)
        same = gradient.sign() == velocity.sign()
        gain = torch.where(same, gain * 0.8, gain + 0.2).clamp_(min=0.01)
        velocity = (0.5 if step < 100 else 0.8) * velocity - len(z) / 12 * gain * gradient
        y = y + velocity
    return y


def picture(z: torch.Tensor, data: Any, path: str) -> None:
    """Draws packages of the sections of ``SHOWN`` as they lie in ``z``, the rows of ``embed``."""
    from matplotlib import colormaps, patheffects
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    draw, labels = torch.Generator().manual_seed(0), torch.from_numpy(data.labels)
    chosen = []
    for section in SHOWN:
        members = (labels == data.classes.index(section)).nonzero().squeeze(1)
        chosen.append(members[torch.randperm(len(members), generator=draw)[:EACH]])
    places = laid_out(z[torch.cat(chosen)]).split([len(part) for part in chosen])
    figure = Figure(figsize=(11, 8.6), facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.02, 0.02, 0.96, 0.86))
    axes.axis("off")
    for number, (name, part) in enumerate(zip(SHOWN.values(), places, strict=True)):
        colour = colormaps["tab20"](number)
        axes.scatter(*part.t().numpy(), s=13, color=colour, alpha=0.75, linewidth=0)
        axes.annotate(
            name,
            part.median(0).values.tolist(),
            ha="center",
            va="center",
            fontsize=12,
            fontweight="bold",
            color=INK,
            path_effects=[patheffects.withStroke(linewidth=3, foreground="white")],
        )
    title = "Sections of Debian, by walks alone"
    figure.text(0.03, 0.945, title, fontsize=19, fontweight="bold", color=INK)
    text = (
        f"a dot is a package, up to {EACH} of a section; the embedding knows which packages name "
        "which, and no section"
    )
    figure.text(0.03, 0.905, text, fontsize=11.5, color="#6b7280")
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--p", type=float, default=1.0, help="how little walks turn back")
    parser.add_argument("--q", type=float, default=0.5, help="how little they go far")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--device", default="cpu", help="where to walk and to train: cpu or cuda")
    parser.add_argument("--picture", help="a file for the picture, as node2vec.png")
    options = parser.parse_args()
    data = pgs.datasets.debian()
    z = embed(data.graph(), p=options.p, q=options.q, epochs=options.epochs, device=options.device)
    print(f"validation accuracy: {accuracy(z, data):.1%}")
    if options.picture is not None:
        picture(z, data, options.picture)


if __name__ == "__main__":
    main()
