"""Publishes the work of a turn: commit, judgement, push, pull request, or a place where it is saved."""
