"""Batches in memory, and the views of them."""
