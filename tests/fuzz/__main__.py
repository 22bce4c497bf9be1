"""Asks the webhook for as long as it is told: `python -m tests.fuzz --seconds 600`.

A question is its number: one that fails is printed with it, and asked again by `--only NUMBER`. At the end stands how
much of the decoder and the rules the questions have reached.
"""

import argparse
import asyncio
import faulthandler
import json
import logging
import sys
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path

import coverage

_CHECKOUT = Path(__file__).parents[2]
# What reads a review and decides on it.
_DECISION = (
    *(
        "webhook/reviews/admission_review.py",
        "webhook/reviews/pods.py",
        "webhook/reviews/workloads.py",
        "webhook/reviews/queues.py",
    ),
    *("muster/gangs/*.py", "muster/validation/*.py", "muster/queueing/queue_tree.py", "muster/queueing/queue_view.py"),
    *(
        f"muster/model/{name}.py"
        for name in ("findings", "modes", "names", "objects", "selectors", "texts", "times", "topology")
    ),
    *(f"muster/resources/{name}.py" for name in ("amounts", "pod_requests", "quantity")),
    "muster/schedulers/*.py",
    "muster/workloads/*.py",
)
# What stands in the same files, and only the controller does.
_OF_THE_CONTROLLER = (
    r"def (pod_group|group_metadata|owner_reference|opening|owner_of|left_of|deadline|near|ends"
    r"|drop|bound|bound_by_nodes|ceiling|within|seconds_of|text_of|or_wanted|_given|_infeasible|_note|min_task_member)\("
)
_EVERY = 10.0  # seconds between two lines
_STUCK = 60.0  # seconds; what hangs outside of Python's own code hears no signal


def main() -> None:
    """Run and exit: 0 when every promise was kept and enough was reached."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long to ask")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first question")
    parser.add_argument("--only", type=int, help="ask that one question")
    parser.add_argument("--reach", type=float, default=95.0, help="per cent of the branches that must be reached")
    arguments = parser.parse_args()
    logging.disable()
    if arguments.only is not None:
        print(_asked(arguments.only))
        return
    measured = coverage.Coverage(
        branch=True, data_file=None, include=[str(_CHECKOUT / path) for path in _DECISION], config_file=False
    )
    measured.exclude(_OF_THE_CONTROLLER)
    measured.start()
    asked, seconds = _ask(arguments.seed, arguments.seconds)
    measured.stop()
    print(f"{sum(asked.values())} questions in {seconds:.0f} s, every promise kept")
    for answer, often in sorted(asked.items()):
        print(f"{often:>10} {answer}")
    measured.report(show_missing=True, skip_covered=True, file=sys.stdout)
    taken, branches = _branches(measured)
    reached = 100 * taken / branches
    print(f"{taken} of {branches} branches taken: {reached:.1f} %")
    sys.exit(f"{reached:.1f} % of the branches is less than {arguments.reach}" if reached < arguments.reach else 0)


def _branches(measured: coverage.Coverage) -> tuple[int, int]:
    """How many ways out of all lines that have several were taken, and how many there are; lines do not count."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        measured.json_report(outfile=str(report))
        totals = json.loads(report.read_text())["totals"]
    return totals["covered_branches"], totals["num_branches"]


def _ask(seed: int, seconds: float) -> tuple[Counter[str], float]:
    # Only now, so that what runs when they are imported is measured as well.
    from tests.fuzz.promises import answered  # noqa: PLC0415
    from tests.fuzz.worlds import any_question  # noqa: PLC0415

    asked: Counter[str] = Counter()
    started = shown = time.monotonic()
    with asyncio.Runner() as runner:
        for number in count(seed):
            faulthandler.dump_traceback_later(_STUCK, exit=True)
            question = any_question(number)
            try:
                answer = answered(question, runner)
            except BaseException:
                print(f"question {number}, to be had again by --only {number}: {question.body[:2000]!r}")
                raise
            asked[f"{question.review.__name__}: {answer}"] += 1
            now = time.monotonic()
            if now - shown > _EVERY:
                shown = now
                print(f"{now - started:5.0f} s  {sum(asked.values())} questions", flush=True)
            if now - started > seconds:
                break
    faulthandler.cancel_dump_traceback_later()
    return asked, time.monotonic() - started


def _asked(number: int) -> str:
    from tests.fuzz.promises import answered  # noqa: PLC0415
    from tests.fuzz.worlds import any_question  # noqa: PLC0415

    with asyncio.Runner() as runner:
        return answered(any_question(number), runner)


if __name__ == "__main__":
    main()
