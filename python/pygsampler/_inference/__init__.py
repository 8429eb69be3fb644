"""Outputs of all nodes of a graph, layer by layer."""
