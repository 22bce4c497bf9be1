"""`muster watch`: queues and gangs as they change, on a terminal or as plain text."""
