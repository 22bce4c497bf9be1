"""Tests of the kinds of workload."""
