"""Benchmarks of pygsampler: run ``python -m benchmarks`` from the root of the repository."""
