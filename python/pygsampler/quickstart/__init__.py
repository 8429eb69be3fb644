"""Trains a GraphSAGE on a real graph with pygsampler and plain torch, in seconds.

``python -m pygsampler quickstart`` runs it. Its parts, for notebooks and tests, are ``model``,
``training``, ``neighbourhood`` and ``picture``.
"""
