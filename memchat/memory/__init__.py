"""What is worth remembering: reading ended sessions, judging proposals, keeping the store clean."""
