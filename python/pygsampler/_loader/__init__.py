"""Loaders of mini-batches and of edges to predict, with all their stages."""
