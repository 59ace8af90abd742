"""Proposals to a repository: what may be pushed, in which words, and the results of its checks."""
