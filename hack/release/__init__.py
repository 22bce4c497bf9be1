"""Releases: publishes image, chart and what is known of them to a registry, signed, and verifies them there."""
