"""Data from files and standard input, as the commands read it."""
