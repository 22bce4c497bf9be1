"""Settings of all unit tests."""

from hypothesis import HealthCheck, settings

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
