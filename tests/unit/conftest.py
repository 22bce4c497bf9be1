"""Settings of all unit tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is no failure: pytest-timeout watches over the time of a whole test.
settings.register_profile("muster", deadline=None, print_blob=True)
settings.load_profile("muster")
