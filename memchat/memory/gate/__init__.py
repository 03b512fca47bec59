"""The evidence gate: pure functions that decide what words prove; no database, model or clock."""
