"""Kubernetes objects as values; names, times, gang states, findings and modes: what every rule speaks of."""
