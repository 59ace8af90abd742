"""One turn of the agent on a folder of this machine: what `forgehand execute` is made of. It knows no GitHub."""
