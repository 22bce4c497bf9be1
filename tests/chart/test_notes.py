"""What helm says when muster is installed."""

from pathlib import Path

import pytest

from tests.support.chart.rendered import Program


def test_who_has_installed_it_is_told_how_to_check_it(helm: Program, chart: Path) -> None:
    pretend = ("--dry-run=client", "--set", "image.repository=own/muster")
    done = helm("install", "muster", str(chart), "--namespace", "muster-system", *pretend)
    assert "\n  muster doctor\n" in done.stdout


def test_the_commands_it_names_are_whole(helm: Program, chart: Path) -> None:
    """What is installed they learn from the cluster."""
    done = helm("install", "muster", str(chart), "--dry-run=client", "--set", "image.repository=own/muster,bound=nodes")
    assert not done.returncode, done.stderr
    notes = [line.split() for line in done.stdout.partition("\nNOTES:\n")[2].splitlines() if line[:9] == "  muster "]
    assert notes == [["muster", "doctor"], ["muster", "queues"], ["muster", "audit"]]


@pytest.mark.parametrize(("namespace", "warned"), [("default", True), ("muster-system", False)])
def test_who_exempts_the_namespace_default_is_told(helm: Program, chart: Path, namespace: str, warned: bool) -> None:
    """Without --namespace it is the release's own, which no webhook looks at."""
    pretend = ("--dry-run=client", "--set", "image.repository=own/muster")
    done = helm("install", "muster", str(chart), "--namespace", namespace, *pretend)
    assert not done.returncode, done.stderr
    assert ("no workload in it runs as a gang" in done.stdout) is warned


@pytest.mark.parametrize(
    ("selector", "told"),
    [("{}", False), ('{"matchExpressions": []}', False), ('{"matchLabels": {"muster": "pilot"}}', True)],
)
def test_who_selects_namespaces_is_reminded(helm: Program, chart: Path, selector: str, told: bool) -> None:
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


def test_without_volcano_the_default_queue_is_to_be_created(helm: Program, chart: Path) -> None:
    pretend = ("--dry-run=client", "--set", "image.repository=own/muster")
    own = ("--set", "schedulers={coscheduling}", "--set", "queues.source=muster", "--set", "defaultQueue=research")
    shown = [helm("install", "muster", str(chart), *pretend, *options).stdout for options in ((), own)]
    assert ["Create the GangQueue research" in text for text in shown] == [False, True]
