"""DGL's graphs and blocks, for ``pygsampler.dgl``."""
