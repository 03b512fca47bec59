"""The store over HTTP, for any client that speaks OpenAI's wire format."""
