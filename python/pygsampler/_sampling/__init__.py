"""What a sampler samples, and batches on their way."""
