"""One browser for all tests of this folder: its start takes longer than most of them."""

from collections.abc import Iterator

import pytest

from tests.support.cli.browser import Window, window


@pytest.fixture(scope="session")
def shared_window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    with window(tmp_path_factory.mktemp("browser")) as one:
        yield one


@pytest.fixture
def browser(shared_window: Window) -> Window:
    """The browser as wide as a desktop, light, with scripts, and with nothing left to say."""
    shared_window.look(1280)
    shared_window.open("about:blank")
    shared_window.said()
    return shared_window
