"""Settings of all unit tests."""

import pytest
from hypothesis import HealthCheck, settings

from muster.schedulers.kubernetes import Kubernetes
from tests.support.examples import examples

# A busy machine is no failure: pytest-timeout watches over the time of a whole test.
settings.register_profile(
    "muster",
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("muster")


@pytest.fixture(autouse=True)
def _usual_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that a test finds served is chosen for it alone."""
    monkeypatch.setattr(Kubernetes, "version", Kubernetes.version)
