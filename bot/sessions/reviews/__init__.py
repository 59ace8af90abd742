"""What a reviewing agent has found, on its way to one review."""
