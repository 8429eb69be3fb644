"""Requests for batches, and batches that are being sampled."""
