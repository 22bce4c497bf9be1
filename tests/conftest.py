"""Fixtures for all tests."""

from tests.testbed_fixtures import own_testbed, pytest_runtest_makereport, testbed

__all__ = ["own_testbed", "pytest_runtest_makereport", "testbed"]
