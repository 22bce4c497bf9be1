"""What helm says when muster is installed."""

import shlex
from pathlib import Path

import pytest

from muster.cli.commands import parser
from tests.support.chart.rendered import Program


def test_who_has_installed_it_is_told_how_to_check_it(helm: Program, chart: Path) -> None:
    pretend = ("--dry-run=client", "--set", "image.repository=own/muster")
    done = helm("install", "muster", str(chart), "--namespace", "muster-system", *pretend)
    assert "\n  muster doctor\n" in done.stdout


@pytest.mark.parametrize(
    ("values", "options"),
    [
        pytest.param("", [], id="as installed"),
        pytest.param(
            "queues.source=muster,schedulers={coscheduling=batch,kubernetes},elasticQuotas=true,gate=off",
            ["--gate=off", "--queue-source=muster", "--schedulers=coscheduling=batch,kubernetes", "--elastic-quotas"],
            id="without Volcano",
        ),
        pytest.param(
            "admitters={kueue,ledger},defaultQueue=shared,excludedNamespaces={infra}",
            [
                "--admitters=kueue,ledger",
                "--default-queue=shared",
                "--namespace-selector=kubernetes.io/metadata.name notin (kube-system, muster-system, infra)",
            ],
            id="Kueue, and some namespaces",
        ),
    ],
)
def test_the_commands_it_names_see_the_cluster_as_muster_does(
    helm: Program, chart: Path, values: str, options: list[str]
) -> None:
    """They do not ask what is installed: without options they would look for Volcano's Queues and PodGroups."""
    settings = ("--set", f"image.repository=own/muster,{values}")
    done = helm("install", "muster", str(chart), "--namespace", "muster-system", "--dry-run=client", *settings)
    assert not done.returncode, done.stderr
    notes = [
        shlex.split(line) for line in done.stdout.partition("\nNOTES:\n")[2].splitlines() if line[:9] == "  muster "
    ]
    assert notes == [["muster", "doctor"], ["muster", "queues", *options], ["muster", "audit", *options]]
    for _, *arguments in notes[1:]:
        assert parser().parse_args(arguments).command in {"queues", "audit"}


def test_the_bound_is_told_to_who_takes_it(helm: Program, chart: Path) -> None:
    """It changes what is free, and not what `muster audit` finds."""
    done = helm("install", "muster", str(chart), "--dry-run=client", "--set", "image.repository=own/muster,bound=nodes")
    assert {"  muster queues --bound=nodes", "  muster audit"} <= set(done.stdout.splitlines())


@pytest.mark.parametrize(("namespace", "warned"), [("default", True), ("muster-system", False)])
def test_who_exempts_the_namespace_default_is_told(
    helm: Program,
    chart: Path,
    namespace: str,
    warned: bool,  # noqa: FBT001
) -> None:
    """Without --namespace it is the release's own, which no webhook looks at."""
    pretend = ("--dry-run=client", "--set", "image.repository=own/muster")
    done = helm("install", "muster", str(chart), "--namespace", namespace, *pretend)
    assert not done.returncode, done.stderr
    assert ("no workload in it runs as a gang" in done.stdout) is warned


@pytest.mark.parametrize(
    ("selector", "told"),
    [("{}", False), ('{"matchExpressions": []}', False), ('{"matchLabels": {"muster": "pilot"}}', True)],
)
def test_who_selects_namespaces_is_reminded(helm: Program, chart: Path, selector: str, told: bool) -> None:  # noqa: FBT001
    """A workload in any other namespace runs without muster, and says nothing."""
    pretend = (
        "--dry-run=client",
        "--set",
        "image.repository=own/muster",
        "--set-json",
        f"namespaceSelector={selector}",
    )
    done = helm("install", "muster", str(chart), "--namespace", "muster-system", *pretend)
    assert not done.returncode, done.stderr
    assert ("only in the namespaces that the chart value namespaceSelector selects" in done.stdout) is told
