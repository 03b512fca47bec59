"""Everyday requests: whether a fact that matters for one is found and stands in its prompt."""
