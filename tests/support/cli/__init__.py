"""The command line run in this process, and what it reads."""
