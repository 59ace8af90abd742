"""Does the time that a text of others costs grow with its length, and no faster, whatever stands in it?

`python -m tests.scaling [READER…]` looks for the worst texts of every function that reads them and tells how their time
grows. `tests/scaling/test_scaling.py` does a small part of it, always the same.
"""
