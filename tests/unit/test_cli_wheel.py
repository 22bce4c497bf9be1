"""The wheel of the command line alone: hack/cli."""

import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from muster.process.revision import in_checkout

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "hack" / "cli"

_WORKLOAD = """
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: demo, labels: {volcano.sh/queue-name: q}}
spec: {headGroupSpec: {template: {spec: {containers: [{name: h, resources: {requests: {cpu: 1}}}]}}}}
"""

# What the wheel has no dependency on, or leaves out.
_ABSENT = ("webhook", "controller", "hack", "tests", "prometheus_client")
_RUN = f"""
import importlib, pkgutil, sys
class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {_ABSENT!r}:
            raise ModuleNotFoundError(f"{{name}} is not in the wheel")
sys.meta_path.insert(0, Absent())
import muster.cli
assert muster.__file__.startswith(sys.argv[1]), muster.__file__
for module in pkgutil.walk_packages(muster.cli.__path__, "muster.cli."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
assert [one.name for one in muster.plan({_WORKLOAD!r})] == ["demo"]
sys.argv = ["muster", "plan", "-f", "-"]
muster.cli.main()
"""


def project(path: Path) -> dict[str, Any]:
    return dict(tomllib.loads(path.read_text())["project"])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=FOLDER, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


def test_it_holds_the_package_muster_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    own = f"muster_cli-{version()}"
    assert {name.partition("/")[0] for name in names} == {"muster", f"{own}.data", f"{own}.dist-info"}
    assert not [name for name in names if "__pycache__" in name]


def test_it_knows_its_commit_and_completes_kubectl(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        commit = archive.read("muster/COMMIT").decode().strip()
        scripts = archive.read(f"muster_cli-{version()}.dist-info/entry_points.txt").decode()
    assert commit == in_checkout(ROOT)
    assert "kubectl_complete-muster = muster.cli.completion:complete" in scripts


def test_pip_puts_its_man_pages_where_man_finds_them(wheel: Path) -> None:
    """`share/man` below the prefix of which `bin` is on PATH."""
    with zipfile.ZipFile(wheel) as archive:
        data = [name for name in archive.namelist() if ".data/" in name]
    folder = f"muster_cli-{version()}.data/data/share/man/man1/"
    assert sorted(data) == sorted(f"{folder}{path.name}" for path in (FOLDER / "man").iterdir())
    assert f"{folder}muster-plan.1" in data


def version() -> str:
    return str(project(ROOT / "pyproject.toml")["version"])


def test_its_dependencies_are_muster_s() -> None:
    muster = project(ROOT / "pyproject.toml")
    of_extras = {one for extra in muster["optional-dependencies"].values() for one in extra}
    dependencies = set(project(FOLDER / "pyproject.toml")["dependencies"])
    assert of_extras < dependencies < {*muster["dependencies"], *of_extras}


def test_every_command_needs_nothing_but_the_wheel_and_its_dependencies(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    # Without site: the editable installation of this checkout is not found.
    path = os.pathsep.join((str(tmp_path), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    done = subprocess.run(
        [sys.executable, "-S", "-c", _RUN, str(tmp_path)],
        input=_WORKLOAD,
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "ray-demo-pg" in done.stdout
