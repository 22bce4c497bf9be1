"""What admission finds in workloads and queues: refusals with numbers, and warnings."""
