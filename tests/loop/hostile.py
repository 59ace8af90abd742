"""Texts that are hard to read."""

from __future__ import annotations


def of_size(unit: str, size: int, head: str = "") -> str:
    return head + unit * ((size - len(head)) // len(unit))


def quotes(size: int) -> str:
    """Quotes that end at once, one after another."""
    return of_size(">#\na\n", size, "/claude \n")


def fences(size: int) -> str:
    """Fences in quotes that never close."""
    return of_size("> ```\nfix \n", size, "/claude \n")


def deep(size: int) -> str:
    """JSON, nested as deep as it is long."""
    half = size // 2
    return "[" * half + "]" * half


def deep_objects(size: int) -> str:
    depth = size // 6
    return '{"a":' * depth + "1" + "}" * depth
