"""What all commands do alike: a quick start, and one line where something is wrong."""

import subprocess
import sys

import pytest

import muster
from muster.workloads import KINDS
from muster.workloads.volcano_job import VOLCANO_JOB
from tests.support.cases import cases
from tests.support.cli.command import Command

# Two operators have an MPIJob, and Volcano a Job of its own.
SUPPORTED = ", ".join(dict.fromkeys(kind.kind for kind in KINDS if kind is not VOLCANO_JOB))


def test_a_plan_starts_without_what_only_a_cluster_needs() -> None:
    """Or every plan would wait for the client, the controller and the metrics to be imported."""
    script = (
        "import sys\n"
        "from muster.cli import main\n"
        "try: main(['plan', '-f', 'docs/examples/raycluster.yaml'])\n"
        "except SystemExit: pass\n"
        "heavy = {'aiohttp', 'asyncio', 'controller', 'kubernetes_asyncio', 'prometheus_client', 'rich'}\n"
        "heavy |= {'urllib.request'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


def test_what_ends_a_workload_or_muster_stands_last_in_the_help(command: Command) -> None:
    out = command.run("--help").out
    names = [words[0] for line in out.splitlines() if line.startswith("    ") and (words := line.split())]
    listed = [name for name in names if name in ("plan", "explain", "queues", "hold", "doctor", "release", "withdraw")]
    assert listed == ["plan", "explain", "queues", "hold", "doctor", "release", "withdraw"]
    assert "muster COMMAND --help" in out


def test_the_version_is_an_option_and_a_command(command: Command) -> None:
    said = {words: command.run(words) for words in ("--version", "version")}
    assert said["--version"] == said["version"]
    assert said["version"].code == 0
    assert said["version"].out.startswith(f"{muster.__version__} (commit ")


def test_a_misspelled_command_is_told_with_the_right_one(command: Command) -> None:
    said = command.run("plna")
    assert (said.code, said.err.splitlines()[-1]) == (
        2,
        'muster: error: there is no command "plna"; did you mean "plan"?',
    )
    assert "invalid choice" in command.run("xyzzy").err


def test_a_plan_takes_files_without_an_option(command: Command) -> None:
    path = command.file('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}')
    for words in ([path], ["-f", path], [path, "-o", "json"]):
        assert command.run("plan", *words).code == 0
    assert command.run("plan").err.endswith("muster: error: no file: muster plan FILE, or - for standard input\n")


@pytest.mark.parametrize("words", [["explain", "raycluster/demo"], ["queues"], ["watch"]], ids=lambda words: words[0])
def test_without_a_usable_kubeconfig_there_is_one_line(command: Command, words: list[str]) -> None:
    missing = str(command.folder / "none")
    done = command.run(*words, f"--kubeconfig={missing}")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"muster {words[0]}: kubeconfig {missing}: no such file\n"


@cases(
    "words, said",
    (
        "another kind",
        ["deployment/web"],
        f'muster does not support the kind "deployment"; it supports {SUPPORTED}, PodGroup',
    ),
    ("dots", ["pod/.."], '"pod/.." is not KIND/NAME or KIND NAME, for example raycluster/demo'),
    ("mixed", ["a/b", "c"], '"a/b c" is not KIND/NAME or KIND NAME, for example raycluster/demo'),
)
def test_what_names_no_workload_is_refused_before_anything_is_asked(
    command: Command, words: list[str], said: str
) -> None:
    done = command.run("explain", *words)
    assert (done.code, done.err) == (2, f"muster explain: {said}\n")


@pytest.mark.parametrize("words", [("release", "--all"), ("audit",)], ids=lambda words: words[0])
def test_an_empty_namespace_does_not_mean_all_of_them(command: Command, words: tuple[str, ...]) -> None:
    """It is a variable of a script that is not set."""
    done = command.run(*words, "-n", "", "--kubeconfig=none")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("argument -n/--namespace: is empty; leave it out to mean no namespace in particular\n")


@pytest.mark.parametrize("name", ["", "one,two", "one) , other in (two"])
def test_what_is_no_name_of_a_gang_releases_none(command: Command, name: str) -> None:
    """In the selector a comma would name two gangs."""
    done = command.run("release", "one", name, "--kubeconfig=none")
    assert (done.code, done.out, done.err) == (2, "", f'muster release: "{name}" is no name of a gang\n')
