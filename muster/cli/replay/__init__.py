"""`muster replay` and `muster test`: what a load would have waited under other policies, on muster's own ledger."""
