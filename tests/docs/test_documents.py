"""What the documents say is what the programs do."""

import re
import shlex
from pathlib import Path

import pytest

from muster.cli.doctor.diagnosis import Check
from muster.model.gang_states import GangState
from tests.support.cli.in_process import muster
from tests.support.pages.blocks import block
from tests.support.pages.numbers import prose

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/*.md"), *CHECKOUT.glob("charts/**/*.md")])


def test_the_plan_in_the_readme_is_what_muster_plan_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tour of the README shows the command's real output, to the letter; `make setup` made what runs here."""
    setup, plan, printed = block("README.md", "$ make setup").split("\n", 2)
    monkeypatch.chdir(CHECKOUT)
    done = muster(*shlex.split(plan.removeprefix("$ .venv/bin/muster ")))
    assert (setup, done.returncode, done.stdout) == ("$ make setup", 0, printed)


def test_the_plan_of_a_misspelled_label_is_what_muster_plan_prints(tmp_path: Path) -> None:
    """docs/cli.md shows it without the summary."""
    _, shown = block("docs/cli.md", "$ muster plan -f job.yaml").split("\n", 1)
    sample = (CHECKOUT / "docs/examples/raycluster.yaml").read_text().partition("---\n")[2]
    (tmp_path / "job.yaml").write_text(
        sample.replace("name: demo", "name: llm").replace("volcano.sh/queue-name", "volcano.sh/queuename")
    )
    said, _, _ = muster("plan", "-f", str(tmp_path / "job.yaml")).stdout.partition("\n\n")
    assert f"{said}\n" == shown


def test_every_state_is_explained() -> None:
    """docs/reasons.md has a row for every state, each with what to do, and for nothing else."""
    rows = re.findall(r"^\| `(\w+)` \| .+ \| .+ \|$", (CHECKOUT / "docs/reasons.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(map(str, GangState))


def test_every_command_is_in_the_table() -> None:
    """docs/cli.md lists the commands that there are."""
    commands = set(re.findall(r"^    ([a-z-]+)\s", muster("--help").stdout, re.MULTILINE)) - {"version"}
    assert commands == set(re.findall(r"^\| `muster ([a-z-]+)", (CHECKOUT / "docs/cli.md").read_text(), re.MULTILINE))


def test_every_check_of_the_doctor_is_in_the_table() -> None:
    """docs/cli.md has a row for each, in their order."""
    _, _, section = (CHECKOUT / "docs/cli.md").read_text().partition("## muster doctor")
    section, _, _ = section.partition("\n## ")
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(map(str, Check))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link of a document names a file of the repository."""
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text())
    assert [target for target in targets if not (document.parent / target).exists()] == []


def _anchors(document: Path) -> set[str]:
    """What GitHub calls the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_into_documents_lead_to_a_heading(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)]+)\)", document.read_text())
    missing = [
        f"{name}#{anchor}"
        for name, anchor in links
        if anchor not in _anchors(document.parent / name if name else document)
    ]
    assert missing == []


def test_the_chart_is_installed_by_one_command_wherever_it_is_shown() -> None:
    """tests/e2e/test_brownfield.py runs it."""
    shown = block("charts/muster/README.md", "helm install muster")
    assert shown == block("docs/image.md", "helm install muster") == block("docs/install.md", "helm install muster")
    assert shown in (CHECKOUT / "README.md").read_text()


# muster writes `muster.dev/nudge` on a workload, and `muster hold` and `muster resume` write there too.
_UNTOUCHED = re.compile(
    r"workload is never changed|workloads are never changed|see no difference"
    r"|never (?:touches|changes) (?:your|a|the) workload",
    re.IGNORECASE,
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_page_says_that_muster_leaves_the_whole_workload_alone(document: Path) -> None:
    """What never changes is spec and labels: an annotation does, while the workload is short of pods."""
    assert _UNTOUCHED.findall(prose(str(document.relative_to(CHECKOUT)))) == []


def test_the_figures_of_the_readme_are_those_of_the_measurements() -> None:
    text = (CHECKOUT / "docs/comparison.md").read_text()
    contenders = (("muster", "muster: both"), ("Kueue as shipped", "Kueue as shipped: manager"))
    patterns = [
        *(rf"^{name} .*  ([\d.]+) \([\d.-]+\)  [\d.]+ \([\d.-]+\)$" for name, _ in contenders),
        *(rf"^{process} +7,650 +([\d.]+) " for _, process in contenders),
    ]
    opened, others_opened, cpu, others_cpu = (re.findall(pattern, text, re.MULTILINE)[0] for pattern in patterns)
    assert (
        f"1,000 pods in {opened} seconds, for {cpu} seconds of CPU (Kueue 0.19: {others_opened} and {others_cpu})"
        in prose("README.md")
    )
    decision = re.search(r"50,000 gangs in 1,000 queues .* and ([\d.]+ ms)", prose("docs/operations.md"))
    assert decision
    assert f"50,000 gangs in 1,000 queues a decision takes {decision[1]}" in re.sub(
        r"\[(.*?)\]\(.*?\)", r"\1", prose("README.md")
    )


def test_make_targets_named_in_documents_exist() -> None:
    """Whoever types a `make` command from the documents gets it."""
    known = set(re.findall(r"^([a-z0-9-]+):", (CHECKOUT / "Makefile").read_text(), flags=re.MULTILINE))
    named = {
        name for path in DOCUMENTS for name in re.findall(r"`?make ([a-z][a-z0-9-]*)(?:`| +#| KEEP)", path.read_text())
    }
    assert named
    assert named <= known


# What tests/docs/test_house.py asks of every section about a kind.
_WORKED = re.findall(r"```yaml\n(.*?)```\n\n```text\n(.*?)```", (CHECKOUT / "docs/gangs.md").read_text(), re.DOTALL)


@pytest.mark.parametrize(("manifest", "shown"), _WORKED, ids=[shown.split(maxsplit=1)[0] for _, shown in _WORKED])
def test_the_worked_examples_are_what_muster_plan_says(tmp_path: Path, manifest: str, shown: str) -> None:
    """docs/gangs.md shows of each kind the plan's lines, without the summary."""
    file = tmp_path / "manifest.yaml"
    file.write_text(manifest)
    said, _, _ = muster("plan", "-f", str(file)).stdout.partition("\n\n")
    assert f"{said}\n" == shown
