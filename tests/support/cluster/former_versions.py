"""Former versions of muster, which run beside this one while an upgrade or a rollback is under way.

Every version that was released is kept (`hack.release.kept`). Before them there is one that was not: the chart of an
early day, and this checkout with another version and an older wire format: beside a gang's admission it does not write
for what it was given (`muster.planning.record`), which is how muster once was. Since its code is today's, it
reads what the early chart gives no right to: `rights` does.
"""

import shutil
from pathlib import Path
from typing import Any

from hack.image.build import CHECKOUT
from hack.image.wheels import muster_wheel
from hack.release.kept import Kept, kept
from muster import __version__

UNRELEASED = "0.0.9"
FORMER_VERSIONS = (UNRELEASED, *(one.version for one in kept() if one.version != __version__))
"""All of them, the oldest first."""
_CHART = Path(__file__).parents[2] / "node" / "former-chart.tgz"
_PACKED = ("muster", "webhook", "controller", "requirements", "pyproject.toml", "README.md", "LICENSE")
_EDITS = (
    ("pyproject.toml", f'version = "{__version__}"', f'version = "{UNRELEASED}"'),
    ("muster/__init__.py", f'__version__ = "{__version__}"', f'__version__ = "{UNRELEASED}"'),
    ("muster/planning/record.py", '    return text if len(text) <= _LONGEST else ""\n', '    return ""\n'),
)


def former_versions(folder: Path) -> dict[str, Kept]:
    """Return them by their version; the one that was not released is made in an empty folder."""
    released = {one.version: one for one in kept() if one.version in FORMER_VERSIONS}
    return {UNRELEASED: _unreleased(folder), **released}


def _unreleased(folder: Path) -> Kept:
    for part in _PACKED:
        if (CHECKOUT / part).is_dir():
            shutil.copytree(CHECKOUT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(CHECKOUT / part, folder / part)
    for path, now, then in _EDITS:
        text = (folder / path).read_text()
        assert text.count(now) == 1, f"{path} has not one {now!r}: tell tests/support/cluster/former_versions.py"
        (folder / path).write_text(text.replace(now, then))
    wheels = folder / "wheels"
    muster_wheel(folder, wheels)
    (wheel,) = wheels.glob("*.whl")
    return Kept(UNRELEASED, _CHART, wheel, folder)


def rights(namespace: str) -> list[dict[str, Any]]:
    """The ClusterRole and the binding for what the unreleased image reads beyond its chart's rights."""
    meta, api = {"name": "former-reads"}, "rbac.authorization.k8s.io"
    rule = {"apiGroups": [""], "resources": ["resourcequotas"], "verbs": ["list", "watch"]}
    subjects = [
        {"kind": "ServiceAccount", "name": f"muster-{process}", "namespace": namespace}
        for process in ("webhook", "controller")
    ]
    return [
        {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": meta, "rules": [rule]},
        {
            "apiVersion": f"{api}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "former-reads"},
            "subjects": subjects,
        },
    ]
