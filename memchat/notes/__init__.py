"""Notes: memos and documents, cut into chunks, searched by meaning and words, and asked."""
