"""How clean the memory keeps itself: one table, made by ``python -m benchmarks.lifecycle``."""
