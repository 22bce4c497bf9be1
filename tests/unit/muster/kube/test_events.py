"""Events as the apiserver takes them."""

import pytest

from muster.kube.events import EventSource, Regarding
from muster.model.names import is_object_name


@pytest.mark.parametrize("sign", ["-", ".", "x"])
def test_an_event_about_an_object_with_a_long_name_has_a_valid_one(sign: str) -> None:
    """Else the apiserver refuses it: the name is cut, and no part of one may end with a hyphen, or be empty."""
    name = f"{'a' * 199}{sign}{'b' * 53}"
    about = Regarding("v1", "Pod", "team", name, "uid-1")
    event = EventSource("muster.dev/test", "test-0", "Test").event(about, "Waits", "", warning=False, seconds=0.0)
    assert is_object_name(event["metadata"]["name"])
    assert is_object_name(name)
    assert event["regarding"]["name"] == name
