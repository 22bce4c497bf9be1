"""The page in a real pod, from the image, behind the real apiserver's service proxy."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.testbed import Testbed, wait_for
from muster.model.resource import QUEUES
from tests.support.cli.browser import window
from tests.support.cluster import proxied_page
from tests.support.cluster.grants import grant, user
from tests.support.cluster.helm_release import NAMESPACE, Release
from tests.support.cluster.proxied_page import PATH, READERS, SECRET
from tests.support.manifests.applied import queue

_FORBIDDEN, _NOT_FOUND, _OK = 403, 404, 200
_WHO = "ServiceAccount muster-page of namespace muster-system"
_QUEUE = "of-the-page"


@pytest.fixture(scope="module")
def page(loaded: Release) -> Iterator[Testbed]:
    """The testbed on which it is served."""
    with proxied_page.installed(loaded):
        yield loaded.testbed


def test_who_may_get_it_at_the_apiserver_reads_it_and_nobody_else(page: Testbed) -> None:
    """With one right, on this Service; whoever has it and not the secret sees nothing."""
    api = page.api()
    grant(api, "muster-page-readers", READERS, user("reader"), namespace=NAMESPACE)
    wait_for("the right to count", lambda: api("GET", PATH, user="reader").status == _OK)
    seen = str(api("GET", PATH, user="reader").body["message"])
    assert f"<b>{_WHO}</b>" in seen
    assert "Queues and gangs" in seen
    assert ">Unknown<" not in seen, "its account may read all that it shows"
    assert api("GET", PATH, user="stranger").status == _FORBIDDEN
    assert api("GET", "/api/v1/pods", user="reader").status == _FORBIDDEN
    guess = api("GET", PATH.replace(SECRET, "guess"), user="reader")
    assert (guess.status, "ask the person who installed muster" in guess.message) == (_NOT_FOUND, True)


def test_a_browser_behind_kubectl_proxy_has_it_whole_and_live(page: Testbed, tmp_path: Path) -> None:
    """Styles, script and links work below the proxy's path, and a change appears by itself."""
    api = page.api()
    with proxied_page.proxy(page) as port, window(tmp_path) as browser:
        assert re.match(r"text/event-stream; charset=utf-8 event: changed data: \d+$", proxied_page.told(port))
        browser.look(1280)
        browser.open(f"http://127.0.0.1:{port}{PATH}")
        browser.wait(lambda: browser.text("#live").startswith("Live"))
        assert _WHO in browser.text(".viewer")
        api.create(QUEUES.path(), queue(_QUEUE, cpu="4"))
        browser.wait(lambda: _QUEUE in browser.text("#queues-rows"))
        browser.driver.find_element("link text", _QUEUE).click()
        browser.wait(lambda: f"queue={_QUEUE}" in browser.driver.current_url)
        assert _WHO in browser.text(".viewer")
        assert browser.violations() == []
        assert browser.said() == []
        api.delete(QUEUES.path(name=_QUEUE))
