"""Outside services: how the host asks addresses that accounts have named, and which secret goes with a request."""
