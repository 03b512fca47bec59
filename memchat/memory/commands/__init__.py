"""What a person tells memory in a chat: "remember …", "forget …", "what do you know about me?"."""
