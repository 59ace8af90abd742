"""MCP through the gateway: agents reach the tools of an account's servers here, and never their credentials."""
