"""Tests of the gang schedulers."""
