"""The derived index: FAISS shards over the vectors the rows hold. It may be lost at any time."""
