"""What is particular to work on a pull request that is open already: forks and discussions."""
