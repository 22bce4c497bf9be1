"""The image of a former version of muster, which runs beside this one while an upgrade or a rollback is under way.

There is none that was released. It is built of this checkout, with another version and an older wire format: beside a
gang's admission it does not write for what that was (`muster.observe.admitted_terms`), which is how muster once was.
Since its code is today's, it reads what the former chart gives no right to: `rights` does.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from hack.image.build import CHECKOUT, Built, Source, build
from muster import __version__

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FORMER_VERSION", "former_image", "rights"]

FORMER_VERSION = "0.0.9"
_PACKED = ("muster", "webhook", "controller", "requirements", "pyproject.toml", "README.md", "LICENSE")
_EDITS = (
    ("pyproject.toml", f'version = "{__version__}"', f'version = "{FORMER_VERSION}"'),
    ("muster/__init__.py", f'__version__ = "{__version__}"', f'__version__ = "{FORMER_VERSION}"'),
    ("muster/observe/admitted_terms.py", '    return text if len(text) <= _LONGEST else ""\n', '    return ""\n'),
)


def former_image(folder: Path, name: str) -> Built:
    """Build it in an empty folder."""
    for part in _PACKED:
        if (CHECKOUT / part).is_dir():
            shutil.copytree(CHECKOUT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(CHECKOUT / part, folder / part)
    for path, now, then in _EDITS:
        text = (folder / path).read_text()
        assert text.count(now) == 1, f"{path} has not one {now!r}: tell tests/support/cluster/former_image.py"
        (folder / path).write_text(text.replace(now, then))
    return build(Source(folder, "former", 0), name=name, progress=print)


def rights(namespace: str) -> list[dict[str, Any]]:
    """The ClusterRole and the binding for what the former image reads beyond the former chart's rights."""
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
