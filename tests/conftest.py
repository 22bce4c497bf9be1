"""Fixtures for all tests."""

from tests.support.cluster.image_fixtures import container, image, image_tree
from tests.support.cluster.testbed_fixtures import own_testbed, pytest_runtest_makereport, testbed

__all__ = ["container", "image", "image_tree", "own_testbed", "pytest_runtest_makereport", "testbed"]
