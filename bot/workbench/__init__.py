"""One turn of the agent on a folder of this machine, for `forgehand execute`. It knows nothing of GitHub."""
