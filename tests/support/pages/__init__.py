"""Documents that are generated, or compared with what tests saw."""
