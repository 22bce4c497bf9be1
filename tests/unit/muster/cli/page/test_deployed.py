"""The page behind the apiserver's service proxy: who may ask, and that it says whose view it is."""

import socket
from pathlib import Path

import pytest

from muster.cli.page.__main__ import listening, main, read_secret, viewer
from muster.cli.page.guard import Door, refusal
from muster.cluster.cluster import Cluster
from muster.model.objects import InvalidObjectError
from tests.support.cases import cases
from tests.support.cli.page import SECRET, served
from tests.support.controller.stores import filled
from tests.support.faults.apiserver import FaultyApiserver, reply
from tests.support.manifests.gangs import gangs, limited
from tests.support.manifests.observed import JSON, queue
from tests.unit.muster.cli.page.test_server import text_of

PROXIED = Door(SECRET, proxied=True, hint="ask whoever installed it")
WHO = "ServiceAccount muster-page of namespace muster-system"
# As a browser behind `kubectl proxy` sends it, and the apiserver passes it on.
_HOST = {"Host": "10.0.0.4:6443"}


def cluster() -> Cluster:
    workloads, pods, groups = gangs(["run-0", "wait-0"], state="Told")
    return filled(workloads=workloads, pods=pods, groups=groups, queues=[queue("root"), limited("q", cpu="5")])


async def test_every_page_says_whose_view_it_is_before_anything_else() -> None:
    async with served(cluster(), door=PROXIED, viewer=WHO) as page:
        for path, status in (("", 200), ("gang?namespace=team&name=ray-run-0-pg", 200), ("gang?name=none", 404)):
            code, text, _ = await page.get(path)
            seen = text_of(text)
            assert code == status
            assert f"This page shows what {WHO} may read, for every reader" in seen
            assert text.index(WHO) < text.index("<h1")
            assert f"Read with the permissions of {WHO}. This page changes nothing." in seen
            assert "kubeconfig" not in seen
            assert "you may not read it" not in seen


async def test_on_loopback_it_is_ones_own_view() -> None:
    async with served(cluster()) as page:
        _, text, _ = await page.get()
    assert "for every reader" not in text_of(text)


@pytest.mark.parametrize("secret", ["", SECRET])
async def test_with_and_without_a_secret_all_its_addresses_are_relative(secret: str) -> None:
    """Below whatever path the proxy puts before them."""
    async with served(cluster(), door=Door(secret, proxied=True), viewer=WHO) as page:
        code, text, _ = await page.get()
        style, _, _ = await page.get("page.css")
        gang, _, _ = await page.get("gang?namespace=team&name=ray-run-0-pg")
    assert (code, style, gang) == (200, 200, 200)
    assert 'href="/' not in text
    assert 'src="/' not in text
    assert 'action="/' not in text


async def test_a_pod_that_reaches_the_service_and_has_no_secret_sees_nothing() -> None:
    async with served(cluster(), door=PROXIED, viewer=WHO) as page:
        for path in ("/", "/gang", "/events", "/page.css", f"/{SECRET[:-1]}/", f"/x/{SECRET}/"):
            async with page.session.get(f"http://127.0.0.1:{page.port}{path}") as answer:
                text = await answer.text()
                assert (answer.status, "ray-" in text, PROXIED.hint in text) == (404, False, True)


@cases(
    "headers, status",
    ("curl", _HOST, None),
    ("any name", {"Host": "muster-page.muster-system.svc"}, None),
    ("the address bar", _HOST | {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, None),
    ("the page itself", _HOST | {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, None),
    ("and its origin", _HOST | {"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8001"}, None),
    ("a link", _HOST | {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, None),
    ("another site", _HOST | {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403),
    ("another port", _HOST | {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403),
    ("another site in an old browser", _HOST | {"Origin": "http://evil.example"}, 403),
    ("the apiserver's own pages", _HOST | {"Origin": "https://10.0.0.4:6443"}, 403),
    ("a sandboxed frame", _HOST | {"Origin": "null", "Sec-Fetch-Site": "cross-site"}, 403),
)
def test_no_other_site_asks_through_the_proxy(headers: dict[str, str], status: int | None) -> None:
    refused = refusal(headers, PROXIED, SECRET)
    assert (refused.status if refused else None) == status


@pytest.mark.parametrize(
    "text", ["", "short", "a" * 201, "sixteen/letters/and/slashes", "é" * 20, "two words and more"]
)
def test_a_secret_that_no_address_can_have_is_told(text: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"16 to 200 letters.*openssl rand -hex 24"):
        read_secret(file)


def test_a_secret_has_no_line_end(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("0123456789abcdef-_XYZ\n")
    assert read_secret(file) == "0123456789abcdef-_XYZ"


@pytest.mark.parametrize(
    ("address", "reached"),
    [("", {"127.0.0.1", "::1"}), ("127.0.0.1", {"127.0.0.1"}), ("::1", {"::1"})],
)
def test_it_listens_on_both_families_unless_it_is_told_an_address(address: str, reached: set[str]) -> None:
    """In a cluster of IPv6 only its pod has no other address."""

    def answers(host: str, port: int) -> bool:
        try:
            socket.create_connection((host, port), 10).close()
        except OSError:
            return False
        return True

    with listening(address, 0) as one:
        port = one.getsockname()[1]
        assert {host for host in ("127.0.0.1", "::1") if answers(host, port)} == reached


def test_without_its_secret_it_does_not_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page without one would be open to every pod."""
    monkeypatch.setattr("sys.argv", ["muster-page", f"--secret-file={tmp_path / 'none'}"])
    with pytest.raises(SystemExit, match=r"muster-page: .*No such file"):
        main()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("name", "account"),
    [
        ("system:serviceaccount:muster-system:muster-page", WHO),
        ("kubernetes-admin", "user kubernetes-admin"),
        ("", "user "),
    ],
)
async def test_the_apiserver_says_who_reads(name: str, account: str) -> None:
    async with FaultyApiserver.serving() as apiserver, apiserver.client() as client:
        apiserver.on("POST", reply({"status": {"userInfo": {"username": name}}}))
        assert await viewer(client) == account


@pytest.mark.parametrize("answer", [{}, {"status": {}}, {"status": {"userInfo": {"username": None}}}])
async def test_an_answer_without_a_name_is_a_user_without_one(answer: JSON) -> None:
    async with FaultyApiserver.serving() as apiserver, apiserver.client() as client:
        apiserver.on("POST", reply(answer))
        assert await viewer(client) == "user "


async def test_an_answer_of_another_form_is_an_error_that_says_where() -> None:
    async with FaultyApiserver.serving() as apiserver, apiserver.client() as client:
        apiserver.on("POST", reply({"status": {"userInfo": "me"}}))
        with pytest.raises(InvalidObjectError, match=r"status\.userInfo"):
            await viewer(client)
