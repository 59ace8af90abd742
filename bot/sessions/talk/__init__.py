"""What people and the agent say to each other while a turn is at work or waits for them."""
