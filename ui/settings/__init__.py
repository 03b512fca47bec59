"""The parts of the settings page, each with what it shows and what it does."""
