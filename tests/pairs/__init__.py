"""Whole clusters in which another scheduler places gangs, or another admitter admits them."""
