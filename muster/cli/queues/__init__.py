"""`muster queues` and `muster watch`: the queue tree and its gangs, once or as they change."""
