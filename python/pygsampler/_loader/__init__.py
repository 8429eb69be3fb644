"""Loaders of mini-batches and of edges to predict, and all that they are made of."""
