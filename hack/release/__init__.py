"""Releases: publishes image, chart, SBOMs and provenance to a registry, signed, and verifies them there."""
