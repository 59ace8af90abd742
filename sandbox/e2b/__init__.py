"""Provides environments in E2B's cloud. Only this package imports E2B's SDK, and only when somebody needs a sandbox."""
