"""Tests of the parts: rules as functions of values, and processes with a recording client; no cluster, no network."""
