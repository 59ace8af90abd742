"""The agent's prompts, and how its answers are read; pure."""
