"""Facts in the store: writing, merging, changing by hand, the inbox, the audit, cues."""
