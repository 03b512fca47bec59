"""Reading an ended conversation: windows, proposals, the second look, and what becomes of each."""
