"""The image's programs on a root that cannot be written, as nobody."""

import subprocess
import sys

import muster
from hack.image.build import CHECKOUT, source
from tests.support.image.container import Container

_EXAMPLE = CHECKOUT / "docs" / "examples" / "raycluster.yaml"


def test_the_container_of_these_tests_is_as_strict_as_the_charts(container: Container) -> None:
    ask = (
        "import os\n"
        "status = dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines())\n"
        "print(os.getuid(), os.getgid(), os.getgroups(), int(status['CapEff'], 16), status['NoNewPrivs'])\n"
        "for path in ('/x', '/usr/local/bin/x', '/var/x'):\n"
        "    try:\n"
        "        open(path, 'w')\n"
        "    except OSError as error:\n"
        "        print(error.strerror)\n"
    )
    said = container.run("python3.11", "-c", ask).stdout.splitlines()
    assert said == ["65532 65532 [65532] 0 1", *["Read-only file system"] * 3]


def test_it_says_version_and_commit(container: Container) -> None:
    commit = source(CHECKOUT).commit
    assert container.run("muster", "version").stdout == f"{muster.__version__} (commit {commit})\n"


def test_it_plans_as_the_checkout_does(container: Container) -> None:
    manifests = _EXAMPLE.read_text()
    here = subprocess.run(
        [sys.executable, "-m", "muster.cli", "plan", "-f", "-"],
        cwd=CHECKOUT, input=manifests, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert container.run("muster", "plan", "-f", "-", text=manifests).stdout == here.stdout


def test_there_is_no_shell(container: Container) -> None:
    for shell in ("sh", "bash", "dash", "busybox"):
        assert container.run("python3.11", "-c", f"import shutil; print(shutil.which('{shell}'))").stdout == "None\n"
