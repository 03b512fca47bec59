"""Indexing many memos: pace, memory, and kill -9 in the middle."""
