"""Queues and gangs as they are now, read with the user's own rights: for `muster watch` and `muster page`."""
