"""Train a GraphSAGE on a real graph with pygsampler and plain torch, in seconds.

``python -m pygsampler quickstart`` runs it. ``model``, ``training``, ``neighbourhood`` and ``picture`` are
its parts, for notebooks and tests.
"""
