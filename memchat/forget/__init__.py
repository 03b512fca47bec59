"""Forgetting for good: purge, tombstones, redaction of conversations, undo."""
