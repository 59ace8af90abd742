"""What a turn proposes to a repository: what may be pushed, in which words, and what its checks gave."""
