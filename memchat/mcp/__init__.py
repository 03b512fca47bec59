"""The store as an MCP server: for assistants that are not memchat. A face: no logic."""
