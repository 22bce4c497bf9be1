"""Examples of each command, as its `--help` and its man page show them; tests parse all, and run those of `plan`."""

import argparse

_HEAD = "examples:\n"

EXAMPLES: dict[str, dict[str, str]] = {
    "plan": {
        "muster plan -f raycluster.yaml": "what muster would do with a manifest",
        "helm template . | muster plan --cluster --strict -f -": "in a pipeline, with the queues of the cluster",
        "muster plan -o junit -f manifests/ > plan.xml": "as a report for a CI system",
    },
    "release": {
        "muster release -n team-a ray-demo-pg ray-llm-pg": "two gangs, by the names of their PodGroups",
        "muster release --all --dry-run": "what would be opened everywhere",
    },
    "withdraw": {
        "muster withdraw --dry-run": "what would be removed",
    },
    "explain": {
        "muster explain raycluster/demo": "why a RayCluster waits",
        "muster explain --ledger raycluster/demo": "and who holds the queue, and when it starts",
        "muster explain --what-would-help raycluster/demo": "what would let it start now",
        "muster explain -n team-a -o json rayjob/nightly": "the RayCluster of a RayJob, for a program",
    },
    "queues": {
        "muster queues": "the tree with all limits",
        "muster queues -o json | jq -r '.queues[] | select(.waiting > 0) | .name'": "the queues in which gangs wait",
    },
    "gangs": {
        "muster gangs --waiting": "who waits, and since when",
        "muster gangs --queue research -o wide": "with the reasons, in a queue and those below it",
    },
    "watch": {
        "muster watch": "until Ctrl-C",
        "muster watch -n team-a": "without the right to read all namespaces",
    },
    "report": {
        "muster report": "the last week by queue",
        "muster report --since 30d --by owner -o csv > use.csv": "who held GPUs this month, for a spreadsheet",
        "muster report --by label=team --svg use.svg": "by a label that the chart names",
    },
    "page": {
        "muster page": "on a free port; open the address that it prints",
        "muster page -n team-a --port 8001": "without the right to read all namespaces",
    },
    "hold": {
        "muster hold queue/research": "no gang starts in a queue, or in one below it",
        "muster hold -n team-a rayjob/nightly pytorchjob/train": "two workloads wait, and those behind them go on",
        "muster hold --dry-run raycluster/demo": "check whether you may",
    },
    "resume": {
        "muster resume queue/research": "the gangs of a queue go on",
        "muster resume -n team-a rayjob/nightly": "a workload, and what it has made",
    },
    "audit": {
        "muster audit": "before the webhook refuses, and no longer warns",
        "muster audit -n team-a -o json": "one namespace, for a program",
    },
    "doctor": {
        "muster doctor": "is everything as it should be?",
        "muster doctor --probe -n sandbox": "with three small pods, in a namespace for that",
    },
    "migrate-queues": {
        "muster migrate-queues --to muster --dry-run": "which GangQueues would be made of Volcano's Queues",
    },
    "record": {
        "muster record --out day.jsonl.gz": "until Ctrl-C",
    },
    "replay": {
        "muster replay generated:1": "a day of short runs under five policies",
        "muster replay --policy bounds=0 --policy bounds=0.3 KTH-SP2-1996.swf.gz": (
            "a log of your own, without and with time limits on a third of it"
        ),
    },
    "test": {
        "muster test docs/examples/queue-test.yaml": "do the queues keep their promises?",
        "muster test --junit results.xml queues-test.yaml": "in a pipeline",
    },
    "completion": {
        "source <(muster completion bash)": "in ~/.bashrc",
        "source <(muster completion zsh)": "in ~/.zshrc",
    },
    "version": {
        "muster version": "also: muster --version",
    },
}
"""By command, what a user types, each with its purpose; each command has one at least."""


def epilog(command: str) -> str:
    """The examples of a command below each other, as at the end of its `--help`."""
    return _HEAD + "\n".join(f"  # {purpose}\n  {line}" for line, purpose in EXAMPLES[command].items())


class Formatter(argparse.HelpFormatter):
    """Wraps all texts but the examples, whose lines stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(_HEAD) else super()._fill_text(text, width, indent)
