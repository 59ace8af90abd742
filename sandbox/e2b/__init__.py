"""Environments in E2B's cloud; the only package that imports E2B's SDK, and only once a sandbox is asked for."""
