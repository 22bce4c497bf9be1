"""`muster replay`, `muster test` and `muster record`: the waits of a load under other policies."""
