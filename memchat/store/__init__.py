"""The rows, which are the truth: one SQLite file, one module a noun.

``Database`` opens the file and gives two kinds of transaction; every verb of the other modules
takes the open connection first, so that several of them commit together or not at all. A later
PostgreSQL store brings its own ``Database`` and keyword search; the rest is dialect-free.
"""
