"""One issue per repository that shows what runs, waits and fails there, with boxes that give commands."""
