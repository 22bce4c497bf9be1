"""One file for each reviewed thing, and what the reviews know of the cluster."""
