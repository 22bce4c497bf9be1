"""Exact quantities, the effective requests of pods, and the additions of a namespace or a cluster to them."""
