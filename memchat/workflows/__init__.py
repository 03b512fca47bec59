"""Workflows: steps that search the notes, ask a model or call a tool, one after the other."""
