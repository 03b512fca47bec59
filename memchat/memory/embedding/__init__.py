"""Vectors: the store's embedding space, time limits, batches, changing the service, repair."""
