"""Shared parts of both processes: lifecycle, logs, probes, metrics, certificates as values, and build information."""
