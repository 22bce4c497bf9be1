"""The controller's parts with a client that records what they write."""
