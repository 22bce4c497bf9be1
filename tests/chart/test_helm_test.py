"""The pod of `helm test`; tests/apiserver runs what it runs, tests/node the pod itself on a real node."""

import subprocess
import sys
from pathlib import Path

import pytest

from hack.image.machine import PYTHON
from muster.cli import parser
from tests.support.chart.rendered import JSON, Program, Render


@pytest.fixture(scope="module")
def spec(render: Render) -> JSON:
    found: JSON = render("webhook.tolerations[0].operator=Exists", release="gangs").one("Pod")["spec"]
    return found


def test_it_is_a_test_and_nothing_else(render: Render) -> None:
    """No Service and no budget takes it for one of muster's own pods."""
    rendered = render()
    metadata = rendered.one("Pod", "muster-test")["metadata"]
    assert metadata["annotations"]["helm.sh/hook"] == "test"
    assert not rendered.one("Service")["spec"]["selector"].items() <= metadata["labels"].items()


def test_it_asks_the_service_that_the_apiserver_calls(spec: JSON, chart: Path) -> None:
    (container,) = spec["containers"]
    assert container["command"] == [f"python{PYTHON}", "-c"]
    assert container["args"][1:] == [
        "gangs-muster-webhook.muster-system.svc",
        "$(GANGS_MUSTER_WEBHOOK_SERVICE_HOST)",
        "443",
    ]
    assert container["args"][0].strip() == (chart / "files" / "reachable.py").read_text().strip()


def test_it_holds_no_key_and_no_token(spec: JSON) -> None:
    (volume,) = spec["volumes"]
    assert [item["key"] for item in volume["secret"]["items"]] == ["ca.crt"]
    assert spec["automountServiceAccountToken"] is False


def test_it_goes_where_the_webhook_goes(spec: JSON) -> None:
    assert spec["tolerations"] == [{"operator": "Exists"}]


def test_who_is_not_reached_is_named(chart: Path) -> None:
    """In one line, without a trace."""
    program = chart / "files" / "reachable.py"
    asked = [sys.executable, str(program), "muster.svc", "127.0.0.1", "1"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("https://muster.svc:1 (127.0.0.1) is not reached: ")


_NATIVE = ("schedulers={volcano,kubernetes=kube}",)


def test_where_kube_scheduler_places_gangs_it_is_probed(render: Render) -> None:
    """With the image of muster, and under the name that the pods of gangs have."""
    pod = render(*_NATIVE, release="gangs").one("Pod", "gangs-muster-probe")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    (container,) = pod["spec"]["containers"]
    assert container["command"] == ["muster"]
    assert container["args"] == [
        "doctor",
        "--probe=only",
        "--namespace=muster-system",
        f"--image={container['image']}",
    ]
    assert parser().parse_args(container["args"]).probe == "only"


def test_its_account_is_there_for_the_test_alone(render: Render) -> None:
    """It comes before the pod, and goes with it."""
    rendered = render(*_NATIVE, release="gangs")
    weights = {}
    for kind in ("ServiceAccount", "Role", "RoleBinding", "Pod"):
        annotations = rendered.one(kind, "gangs-muster-probe")["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "test"
        assert annotations["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
        weights[kind] = int(annotations["helm.sh/hook-weight"])
    assert weights.pop("Pod") > max(weights.values())


def test_elsewhere_nothing_is_probed(render: Render) -> None:
    names = render("schedulers={volcano,coscheduling=default-scheduler}").names()
    assert not [name for name in names if "probe" in name]


@pytest.mark.parametrize(
    ("values", "line", "said"),
    [
        ([], "With webhook.replicas 1", False),
        (["webhook.replicas=1"], "With webhook.replicas 1", True),
        (["webhook.replicas=1", "webhook.failurePolicy=Ignore"], "With webhook.replicas 1", False),
        ([], "are admitted without muster", False),
        (["webhook.failurePolicy=Ignore"], "are admitted without muster", True),
    ],
)
def test_the_notes_say_what_counts_here(helm: Program, chart: Path, values: list[str], line: str, said: bool) -> None:
    settings = [f"--set={value}" for value in ("image.repository=r", *values)]
    done = helm("install", "muster", str(chart), "--namespace=muster-system", "--dry-run=client", *settings)
    text = done.stdout.partition("NOTES:")[2]
    assert (line in text) is said
    assert "helm test muster --namespace muster-system" in text


def test_the_notes_push_to_a_tag_and_name_the_digest_that_runs(helm: Program, chart: Path) -> None:
    """Nobody can push to a digest."""
    digest = f"sha256:{'0' * 64}"
    settings = ("--set=image.repository=r", f"--set=image.digest={digest}", "--set=image.tag=v2")
    text = helm("install", "muster", str(chart), "--dry-run=client", *settings).stdout
    assert f"from image r@{digest}." in text
    assert "crane push dist/image/oci r:v2\n" in text
