"""The facts that a ledger is told, and a model of what follows from them."""
