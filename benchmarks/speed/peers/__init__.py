"""One small script a store. Each runs in an environment of its own and speaks ``serving``."""
