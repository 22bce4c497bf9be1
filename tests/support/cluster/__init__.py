"""Tests on a control plane: fixtures, what happens there on record, and ways to act on it."""
