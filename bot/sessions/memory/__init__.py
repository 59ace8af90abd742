"""The agent's own memory of a session, over turns, restarts and lost environments."""
