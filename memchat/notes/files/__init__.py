"""Files as notes: what is in a file, as the text of a note. One format a module."""
