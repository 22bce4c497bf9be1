"""What helm runs before it removes anything: the hook that takes muster out of the way of what it holds."""

import re
from pathlib import Path

import pytest

from tests.support.chart.rendered import JSON, Program, Render, Rendered

_HOOK = {
    "helm.sh/hook": "pre-delete",
    # What is left of one that failed is no hindrance to the next one, and of one that succeeded nothing is left.
    "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
}


def hooks(rendered: Rendered) -> dict[str, JSON]:
    """The hooks of an uninstall, by kind."""
    found = [item for item in rendered.documents if "pre-delete" in str(item["metadata"].get("annotations", {}))]
    return {item["kind"]: item for item in found}


def test_all_that_the_job_needs_comes_before_it_and_goes_with_it(render: Render) -> None:
    found = hooks(render())
    assert set(found) == {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"}
    for kind, item in found.items():
        annotations = item["metadata"]["annotations"]
        assert item["metadata"]["name"] == "muster-uninstall"
        assert _HOOK.items() <= annotations.items()
        assert int(annotations["helm.sh/hook-weight"]) == (0 if kind == "Job" else -1)
    (subject,) = found["ClusterRoleBinding"]["subjects"]
    assert (subject["name"], subject["namespace"]) == ("muster-uninstall", "muster-system")


@pytest.mark.parametrize(("seconds", "settle", "deadline"), [(5, 6, 155), (30, 31, 180)])
def test_the_job_waits_for_reviews_under_way_and_ends_before_helm_gives_up(
    render: Render, seconds: int, settle: int, deadline: int
) -> None:
    """Whatever happens to it: an image that is not there any more, or a pod that cannot be placed. Helm waits 300 s."""
    job = hooks(render(f"webhook.timeoutSeconds={seconds}", release="gangs"))["Job"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["muster"]
    assert container["args"] == ["withdraw", "--name=gangs-muster", f"--settle={settle}"]
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert (job["spec"]["activeDeadlineSeconds"], job["spec"]["backoffLimit"]) == (deadline, 2)
    assert job["metadata"]["annotations"]["helm.sh/hook-output-log-policy"] == "hook-failed"


def test_the_job_goes_where_the_controller_may(render: Render) -> None:
    rendered = render(
        "controller.nodeSelector.pool=infra,controller.tolerations[0].key=infra,imagePullSecrets[0].name=mine"
    )
    pod = hooks(rendered)["Job"]["spec"]["template"]["spec"]
    controller = rendered.one("Deployment", "muster-controller")["spec"]["template"]["spec"]
    for field in ("nodeSelector", "tolerations", "imagePullSecrets", "securityContext"):
        assert pod[field] == controller[field]
    for field in ("image", "imagePullPolicy", "securityContext"):
        assert pod["containers"][0][field] == controller["containers"][0][field]


def test_what_is_rendered_without_hooks_does_not_take_muster_away(helm: Program, chart: Path) -> None:
    """Kustomize and `kubectl apply` know no hooks of helm's: they would run the Job with all the rest."""
    page = (Path(__file__).parents[2] / "docs" / "gitops.md").read_text()
    (command,) = re.findall(r"^helm (template .+?) --values .+ \| kubectl apply -f -$", page, re.MULTILINE)
    shown = command.replace("oci://REGISTRY/charts/muster", str(chart)).split()
    whole = [one for one in shown if one != "--no-hooks"]
    rendered = [helm(*arguments, "--set", "image.repository=own/muster") for arguments in (whole, shown)]
    assert [(done.returncode, "- withdraw" in done.stdout) for done in rendered] == [(0, True), (0, False)]
