"""`muster explain`: why a workload waits, runs, or is not managed by muster."""
