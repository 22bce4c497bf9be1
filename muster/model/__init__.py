"""Kubernetes objects as values; names, times, gang states, findings and modes, which all rules use."""
