"""Samplers whose distributions are learned while the model is trained."""
