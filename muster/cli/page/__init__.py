"""What the queues and gangs of a cluster do now, read with the user's own rights; `muster watch` shows it."""
