"""Tests of who admits gangs."""
