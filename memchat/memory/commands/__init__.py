"""Commands to memory in a chat: "remember …", "forget …", "what do you know about me?"."""
