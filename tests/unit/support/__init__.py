"""Tests of the tests' own judges."""
