"""How fast memchat's own verbs are, side by side with other local stores, in one run."""
