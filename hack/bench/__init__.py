"""Benchmarks: run by hand, never timed in tests; machines differ, so ratios within one run say most."""
