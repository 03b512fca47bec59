"""How much of what was said is found again; see ``__main__``."""
