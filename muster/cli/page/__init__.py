"""What queues and gangs do now, read with the user's own rights: for `muster watch` and `muster page`."""
