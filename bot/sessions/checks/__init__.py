"""The checks that a repository declares: where they run, what they printed, how a failure goes back to the agent."""
