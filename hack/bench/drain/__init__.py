"""How fast gangs that wait leave a queue, beside a raw client that does the same writes."""
