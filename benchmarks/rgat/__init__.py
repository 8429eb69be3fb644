"""R-GAT on a generated graph with the schema of IGBH, as MLPerf Training measures it.

``python -m benchmarks.rgat --gpus N`` starts a process for each GPU. The graph has the node and
edge types of IGBH in their proportions, the model and the fanouts are those of MLPerf's benchmark,
rows of features are stored in fp8 and shared by the memory of all GPUs. It differs from MLPerf's
run in size and in purpose: the graph is smaller, features are mostly zeros, labels are random, and
nothing is trained to an accuracy.
"""
