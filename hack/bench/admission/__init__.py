"""What a review costs: `python -m hack.bench.admission`."""
