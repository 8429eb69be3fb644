"""Samplers side by side on one graph: checked first, then timed in turns.

What the command ``bench`` runs on a user's graph, and what the repository's ``benchmarks`` run on
theirs. NumPy is needed; torch, DGL and PyG where they take part.
"""
