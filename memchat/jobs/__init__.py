"""The background work of a store: extraction, embedding, forgetting and expiry, from one queue."""
