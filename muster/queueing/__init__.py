"""The queue tree, usage, the ledger, and the admission pass that decides which gangs may start."""
