"""The queue of embeddings: what is left when its workers are killed, and how fast it is."""
