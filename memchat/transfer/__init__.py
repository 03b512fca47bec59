"""A person's data as a file, and back: what moves between stores. A backup is a copy of a store."""
