"""What follows from a gang as the cluster shows it: pure functions of a snapshot, the ledger and the time."""
