"""What both processes share: lifecycle, logs, probes, metrics, certificates as values, and build information."""
