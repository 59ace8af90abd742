"""GitHub's markdown as it is read: blocks and marks, characters nobody sees, what a reader has before the eyes."""
