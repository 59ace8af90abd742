"""Sorts and places the findings of a reviewing agent for one review."""
