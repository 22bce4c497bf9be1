"""Benchmarks: `python -m hack.bench` lists them."""
