"""Talking to the apiserver: connection, list+watch store, work queue, lease.

The only layer below the processes that does I/O. Each concern is a plain synchronous core, to which time is passed in,
with a thin asynchronous shell around it; every request has a deadline, and every retry a limit. Importing this package
imports none of its modules: offline commands do not pay for a connection they never open.
"""
