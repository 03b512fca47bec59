"""Exports a person's data to a file, and imports such a file. A backup copies a whole store."""
