"""Compares samplers on one graph: they are checked first, then timed in turns.

The command ``bench`` runs it on a user's graph, and the repository's ``benchmarks`` on their
graphs. It needs NumPy, and torch, DGL and PyG if these take part.
"""
