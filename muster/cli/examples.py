"""Examples of each command, as its `--help` and its man page show them; tests parse all, and run those of `plan`."""

import argparse
from typing import NamedTuple

_HEAD = "examples:\n"


class Example(NamedTuple):
    """The purpose of a command, and the command as a user types it."""

    purpose: str
    command: str


EXAMPLES: dict[str, tuple[Example, ...]] = {
    "plan": (
        Example("what muster would do with a manifest", "muster plan -f raycluster.yaml"),
        Example(
            "in a pipeline, with the queues of the cluster", "helm template . | muster plan --cluster --strict -f -"
        ),
        Example("as a report for a CI system", "muster plan -o junit -f manifests/ > plan.xml"),
    ),
    "release": (
        Example("two gangs, by the names of their PodGroups", "muster release -n team-a ray-demo-pg ray-llm-pg"),
        Example("what would be opened everywhere", "muster release --all --dry-run"),
    ),
    "withdraw": (Example("what would be removed", "muster withdraw --dry-run"),),
    "explain": (
        Example("why a RayCluster waits", "muster explain raycluster/demo"),
        Example("and who holds the queue, and when it starts", "muster explain --ledger raycluster/demo"),
        Example("what would let it start now", "muster explain --what-would-help raycluster/demo"),
        Example("the RayCluster of a RayJob, for a program", "muster explain -n team-a -o json rayjob/nightly"),
    ),
    "queues": (
        Example("the tree with all limits", "muster queues"),
        Example(
            "the queues in which gangs wait", "muster queues -o json | jq -r '.queues[] | select(.waiting > 0) | .name'"
        ),
    ),
    "gangs": (
        Example("who waits, and since when", "muster gangs --waiting"),
        Example("with the reasons, in a queue and those below it", "muster gangs --queue research -o wide"),
    ),
    "watch": (
        Example("until Ctrl-C", "muster watch"),
        Example("without the right to read all namespaces", "muster watch -n team-a"),
    ),
    "report": (
        Example("the last week by queue", "muster report"),
        Example("who held GPUs this month, for a spreadsheet", "muster report --since 30d --by owner -o csv > use.csv"),
        Example("by a label that the chart names", "muster report --by label=team --svg use.svg"),
    ),
    "page": (
        Example("on a free port; open the address that it prints", "muster page"),
        Example("without the right to read all namespaces", "muster page -n team-a --port 8001"),
    ),
    "hold": (
        Example("no gang starts in a queue, or in one below it", "muster hold queue/research"),
        Example(
            "two workloads wait, and those behind them go on", "muster hold -n team-a rayjob/nightly pytorchjob/train"
        ),
        Example("check whether you may", "muster hold --dry-run raycluster/demo"),
    ),
    "resume": (
        Example("the gangs of a queue go on", "muster resume queue/research"),
        Example("a workload, and what it has made", "muster resume -n team-a rayjob/nightly"),
    ),
    "audit": (
        Example("before the webhook refuses, and no longer warns", "muster audit"),
        Example("one namespace, for a program", "muster audit -n team-a -o json"),
    ),
    "doctor": (
        Example("is everything as it should be?", "muster doctor"),
        Example("with three small pods, in a namespace for that", "muster doctor --probe -n sandbox"),
    ),
    "migrate-queues": (
        Example("which GangQueues would be made of Volcano's Queues", "muster migrate-queues --to muster --dry-run"),
    ),
    "record": (Example("until Ctrl-C", "muster record --out day.jsonl.gz"),),
    "replay": (
        Example("a day of short runs under five policies", "muster replay generated:1"),
        Example(
            "a log of your own, without and with time limits on a third of it",
            "muster replay --policy bounds=0 --policy bounds=0.3 KTH-SP2-1996.swf.gz",
        ),
    ),
    "test": (
        Example("do the queues keep their promises?", "muster test docs/examples/queue-test.yaml"),
        Example("in a pipeline", "muster test --junit results.xml queues-test.yaml"),
    ),
    "completion": (
        Example("in ~/.bashrc", "source <(muster completion bash)"),
        Example("in ~/.zshrc", "source <(muster completion zsh)"),
    ),
    "version": (Example("also: muster --version", "muster version"),),
}
"""By command; each command has one at least."""


def epilog(command: str) -> str:
    """The examples of a command below each other, as at the end of its `--help`."""
    return _HEAD + "\n".join(f"  # {one.purpose}\n  {one.command}" for one in EXAMPLES[command])


class Formatter(argparse.HelpFormatter):
    """Wraps all texts but the examples, whose lines stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(_HEAD) else super()._fill_text(text, width, indent)
