"""What helm says when muster is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.chart.rendered import Program


def test_who_has_installed_it_is_told_how_to_check_it(helm: Program, chart: Path) -> None:
    pretend = ("--dry-run=client", "--set", "image.repository=own/muster")
    done = helm("install", "muster", str(chart), "--namespace", "muster-system", *pretend)
    assert "\n  muster doctor\n" in done.stdout


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
