"""Proposals from a file through the whole route: what the checks and the second look let stand."""
