"""Tests of the controller: its pure parts, and its work with a recording client."""
