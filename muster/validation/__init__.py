"""Findings of admission in workloads and queues: refusals with numbers, and warnings."""
