"""The report, its order and its forms."""

import io
import json
from typing import Any

import yaml

from muster.cli.doctor.command import diagnose, print_report, report
from muster.cli.doctor.diagnosis import Check, Unseen
from muster.cli.doctor.sight import Sight
from muster.cli.ui import ago, lasting
from muster.model.texts import listed
from tests.support.cli.command import Command
from tests.support.cli.doctor_snapshots import healthy

UNSEEN = Unseen("you may not look")


def reported(sight: Sight) -> dict[str, Any]:
    return report(sight.kubernetes, sight.installation, diagnose(sight))


def printed(sight: Sight, form: str = "table") -> str:
    out = io.StringIO()
    print_report(reported(sight), form, out)
    return out.getvalue()


def test_a_cluster_in_order_is_told_check_by_check() -> None:
    said = reported(healthy())
    assert (said["problems"], said["warnings"], said["unknown"]) == (0, 0, 0)
    assert (said["release"], said["namespace"], said["kubernetes"]) == ("muster", "muster-system", "v1.36.3")
    others = {Check.COSCHEDULING, Check.KUBERNETES}  # Volcano places the gangs of this cluster
    assert list(dict.fromkeys(one["check"] for one in said["diagnoses"])) == [
        str(one) for one in Check if one not in others
    ]


def test_the_gravest_of_a_check_comes_first() -> None:
    said = diagnose(healthy(secret=None, pod_answer=UNSEEN))
    assert next(one.level for check, one in said if check is Check.CERTIFICATES) == "problem"
    assert [one.level for check, one in said if check is Check.ANSWERS] == ["unknown"]


def test_the_table_says_what_is_wrong_and_what_to_do() -> None:
    text = printed(healthy(secret=None, members=UNSEEN))
    assert (
        "PROBLEM  certificates  Secret muster-system/muster-webhook-tls is missing\n"
        "                       -> helm makes it again:\n"
        "    helm upgrade muster CHART --namespace muster-system --reset-then-reuse-values\n"
    ) in text
    assert text.endswith("\n1 problem, 0 warnings, 2 could not be checked\n")


def test_programs_get_the_same() -> None:
    assert json.loads(printed(healthy(), "json")) == yaml.safe_load(printed(healthy(), "yaml"))


def test_names_that_would_move_a_cursor_are_written_as_what_they_are() -> None:
    assert "\x1b" not in printed(healthy(kubernetes="v1.36.3\x1b[2J"))


def test_without_muster_what_it_stands_on_is_checked_all_the_same() -> None:
    said = reported(healthy(deployments=(), mutating=(), validating=()))
    assert {one["check"] for one in said["diagnoses"]} == {
        "installation",
        "kinds",
        "volcano",
        "gates",
        "podgroups",
        "operators",
    }


def test_who_may_nothing_hears_of_every_check_and_no_traceback() -> None:
    fields = (
        "deployments",
        "policies",
        "bindings",
        "served",
        "queues",
        "members",
        "groups",
        "secret",
        "lease",
    )
    sight = healthy(**dict.fromkeys((*fields, "pod_answer", "kueue"), UNSEEN))
    said = diagnose(sight)
    assert {one.level for _, one in said} <= {"ok", "unknown"}
    assert len([one for _, one in said if one.level == "unknown"]) >= len(fields)


def test_a_duration_that_is_none_is_refused_before_anything_is_asked(command: Command) -> None:
    done = command.run("doctor", "--held-for=long", "--kubeconfig=none")
    assert (done.code, done.out) == (2, "")
    assert done.err == 'muster doctor: --held-for "long": not a duration; use for example 30m or 1h\n'


def test_a_namespace_that_can_be_none_is_refused_before_anything_is_asked(command: Command) -> None:
    done = command.run("doctor", "--namespace=..", "--kubeconfig=none")
    assert (done.code, done.out, done.err) == (2, "", 'muster doctor: ".." is not a valid namespace name\n')


def test_words_for_times_and_lists() -> None:
    assert [lasting(seconds) for seconds in (1, 119, 120, 7200, 172800)] == [
        "1 second",
        "119 seconds",
        "2 minutes",
        "2 hours",
        "2 days",
    ]
    assert (ago(5), ago(-5)) == ("5 seconds ago", "in 5 seconds")
    assert (ago(0.4), ago(-0.4), ago(0.6)) == ("just now", "just now", "1 second ago")
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"
