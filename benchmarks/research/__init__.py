"""Experiments of the papers, with the modes that are there for comparison."""
