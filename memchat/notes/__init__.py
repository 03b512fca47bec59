"""Notes: voice memos and documents, cut into chunks that a search finds and an answer cites."""
