"""Exact quantities, what a pod really requests, and what a namespace or a cluster adds to it."""
