"""Figures of a machine with an NVIDIA GPU; see __main__."""
