"""What the agent is given to read, and how its answers are read; pure."""
