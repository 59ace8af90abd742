"""The sentences that people read in a thread: pure functions, a module for what each is about."""
