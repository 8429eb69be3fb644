"""What loaders share: batches ahead, shards of ranks, numbers of batches."""
