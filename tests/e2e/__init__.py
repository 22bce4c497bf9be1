"""What users live through, on the real systems."""
