"""The parts of the notes page, and the way to a note from other pages."""
