"""How models write reasoning and tool calls, and how to tell them apart from text while they come."""
