"""Finding what matters now: facts, past turns, ranking, dates in questions, the prompt's block."""
