"""Forgetting for good: purge, blanking in conversations, mentions, tombstones, undo."""
