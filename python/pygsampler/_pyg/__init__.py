"""The adapter for PyG, of which ``pygsampler.pyg`` is the public face."""
