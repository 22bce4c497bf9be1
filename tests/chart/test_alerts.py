"""The alerts, run by Prometheus' own promtool (of Debian's package): each by what it is for, and by nothing else."""

from pathlib import Path

import pytest
import yaml

from tests.support.chart.rendered import JSON, Program, Render

_LEASE = 'leader_election_master_status{name="gangs-muster-controller",pod="%s",job="%s"}'
_CALLS = (
    'apiserver_admission_webhook_rejection_count{name="ray.pods.muster.dev",type="admit",operation="CREATE",'
    'error_type="%s",rejection_code="%s"}'
)
_PASSED = 'apiserver_admission_webhook_fail_open_count{name="%s",type="validating"}'
_DAYS = 86400
# An hour of a cluster in which nothing is wrong, from time 0 on, in steps of a minute. What went wrong before is over.
HEALTHY = {
    "muster_webhook_reviews_under_way": "0x60",
    'muster_webhook_errors_total{webhook="pods",code="429"}': "3x60",
    'muster_webhook_review_duration_seconds_bucket{webhook="pods",le="0.5"}': "0+100x60",
    'muster_webhook_review_duration_seconds_bucket{webhook="pods",le="1"}': "0+100x60",
    'muster_webhook_review_duration_seconds_bucket{webhook="pods",le="+Inf"}': "0+100x60",
    'muster_webhook_certificate_expiration_timestamp_seconds{certificate="serving"}': f"{30 * _DAYS}x60",
    'muster_webhook_certificate_trusted{pod="a"}': "1x60",
    'muster_webhook_certificate_trusted{pod="b"}': "1x60",
    # Two jobs of Prometheus scrape the same pods.
    _LEASE % ("a", "muster"): "1x60",
    _LEASE % ("a", "kubernetes-pods"): "1x60",
    _LEASE % ("b", "muster"): "0x60",
    _LEASE % ("b", "kubernetes-pods"): "0x60",
    _CALLS % ("calling_webhook_error", "0"): "3x60",
    _CALLS % ("no_error", "403"): "0+9x60",
    _PASSED % "reach.muster.dev": "2x60",
    _PASSED % "others.example.com": "0+9x60",
    "muster_reconcile_errors_total": "5x60",
    'muster_watch_failures_total{resource="pods"}': "2x60",
    'muster_event_loop_turn_seconds_count{pod="a"}': "7+100x60",
    'muster_event_loop_turn_seconds_bucket{pod="a",le="1.0"}': "5+100x60",
    'muster_gangs{queue="q",state="Running"}': "4x60",
    'muster_gangs{queue="q",state="Invalid"}': "0x60",
    'muster_gangs{queue="q",state="DeadlinePassed"}': "0x60",
    'muster_gangs{queue="q",state="Unschedulable"}': "1x15 0x10 1x35",
    'muster_gangs{queue="q",state="WaitingForQuota"}': "2x60",
    'muster_queue_used{queue="q",resource="cpu"}': "0x20 4x40",
    'muster_queue_used{queue="q",resource="memory"}': "0x60",
    'muster_queue_oldest_waiting_seconds{queue="q"}': "3600+60x60",
    # On hold for long: its users know.
    'muster_queue_oldest_waiting_seconds{queue="held"}': "900000+60x60",
    'muster_queue_used{queue="held",resource="cpu"}': "0x60",
}
# What is otherwise, how the alert comes then, and what it says. A series of None is not there.
FIRING: dict[str, tuple[dict[str, str | None], dict[str, str], str]] = {
    "MusterWebhookAbsent": ({"muster_webhook_reviews_under_way": None}, {}, "No webhook of muster is seen"),
    "MusterWebhookNotReached": (
        {_CALLS % ("calling_webhook_error", "0"): "3+1x60"},
        {"name": "ray.pods.muster.dev"},
        "Calls of the apiserver to ray.pods.muster.dev fail",
    ),
    "MusterWebhookErrors": (
        {'muster_webhook_errors_total{webhook="pods",code="429"}': "3+1x60"},
        {"webhook": "pods", "code": "429"},
        "Reviews of pods end with HTTP 429",
    ),
    "MusterWebhookSlow": (
        {'muster_webhook_review_duration_seconds_bucket{webhook="pods",le="0.5"}': "0+98x60"},
        {"webhook": "pods"},
        "One in a hundred reviews of pods takes longer than half a second",
    ),
    "MusterCertificateEnds": (
        {'muster_webhook_certificate_expiration_timestamp_seconds{certificate="serving"}': f"{10 * _DAYS}x60"},
        {"certificate": "serving"},
        "The webhook's certificate (serving) ends in 9d 23h 0m 0s",
    ),
    "MusterCertificateNotTrusted": (
        {'muster_webhook_certificate_trusted{pod="b"}': "0x60"},
        {},
        "The apiserver does not trust the webhook's certificate",
    ),
    "MusterNoLeader": (
        {_LEASE % ("a", "muster"): "0x60", _LEASE % ("a", "kubernetes-pods"): "0x60"},
        {},
        "Not one controller of muster leads, but 0",
    ),
    "MusterReconcileErrors": ({"muster_reconcile_errors_total": "5+1x60"}, {}, "Work on gangs keeps failing"),
    "MusterWatchFailing": (
        {'muster_watch_failures_total{resource="pods"}': "2+1x60"},
        {"resource": "pods"},
        "pods cannot be watched",
    ),
    "MusterEventLoopBlocked": (
        {'muster_event_loop_turn_seconds_bucket{pod="a",le="1.0"}': "5+99x60"},
        {"pod": "a"},
        "The event loop of a stands still for more than a second, again and again",
    ),
    "MusterGangsNeedAHand": (
        {'muster_gangs{queue="q",state="Invalid"}': "2x60"},
        {"queue": "q", "state": "Invalid"},
        '2 gangs of queue "q" are Invalid',
    ),
    "MusterGangsUnschedulable": (
        {'muster_gangs{queue="q",state="Unschedulable"}': "1x70"},
        {"queue": "q"},
        '1 gangs of queue "q" are admitted and have no nodes',
    ),
    "MusterQueueIdle": (
        {'muster_queue_used{queue="q",resource="cpu"}': "4x20 0x40"},
        {"queue": "q"},
        'Queue "q" is idle while 2 gangs wait in it',
    ),
    "MusterGangWaitsLong": (
        {'muster_queue_oldest_waiting_seconds{queue="q"}': "300000+60x60"},
        {"queue": "q"},
        'The oldest gang of queue "q" has waited for 3d 12h 20m 0s',
    ),
}
# Further hours with one alert each, as above.
ALSO: list[tuple[str, dict[str, str | None], dict[str, str], str]] = [
    (
        "MusterWebhookNotReached",
        {_PASSED % "reach.muster.dev": "2+1x60"},
        {"name": "reach.muster.dev"},
        "Calls of the apiserver to reach.muster.dev fail",
    ),
    (
        "MusterNoLeader",
        {_LEASE % (pod, job): None for pod in "ab" for job in ("muster", "kubernetes-pods")},
        {},
        "Not one controller of muster leads, but 0",
    ),
    (
        "MusterNoLeader",
        {_LEASE % ("b", "muster"): "1x60"},
        {},
        "Not one controller of muster leads, but 2",
    ),
    (
        "MusterGangsNeedAHand",
        {'muster_gangs{queue="q",state="DeadlinePassed"}': "1x60"},
        {"queue": "q", "state": "DeadlinePassed"},
        '1 gangs of queue "q" are DeadlinePassed',
    ),
]


@pytest.fixture(scope="module")
def groups(render: Render) -> JSON:
    """The rules as Prometheus reads them."""
    rule = render("prometheusRule.enabled=true", release="gangs").one("PrometheusRule")
    spec: JSON = rule["spec"]
    return spec


def _asked(groups: JSON, series: dict[str, str | None], expected: dict[str, JSON]) -> JSON:
    """A test of promtool: after the hour these alerts fire, and no others."""
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items() if values],
        "alert_rule_test": [
            {
                "eval_time": "1h",
                "alertname": rule["alert"],
                "exp_alerts": [
                    {
                        "exp_labels": rule["labels"] | expected[rule["alert"]]["labels"],
                        "exp_annotations": rule["annotations"]
                        | {
                            "summary": expected[rule["alert"]]["summary"],
                            "description": rule["annotations"]["description"].replace("{{ $labels.queue }}", "q"),
                        },
                    }
                ]
                if rule["alert"] in expected
                else [],
            }
            for rule in groups["groups"][0]["rules"]
        ],
    }


def test_promtool_finds_nothing_to_complain_about(promtool: Program, groups: JSON, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump(groups))
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", rules)
    assert not done.returncode, done.stdout + done.stderr
    assert f"{len(FIRING)} rules found" in done.stdout


def test_each_alert_fires_for_its_reason_and_for_no_other(promtool: Program, groups: JSON, tmp_path: Path) -> None:
    """One hour for each, and one in which all is well."""
    assert list(FIRING) == [rule["alert"] for rule in groups["groups"][0]["rules"]]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(groups))
    hours = [_asked(groups, dict(HEALTHY), {})]
    for name, otherwise, labels, summary in [*((name, *hour) for name, hour in FIRING.items()), *ALSO]:
        assert otherwise.keys() <= HEALTHY.keys(), name
        hours.append(_asked(groups, {**HEALTHY, **otherwise}, {name: {"labels": labels, "summary": summary}}))
    page = tmp_path / "test.yaml"
    page.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": hours}))
    done = promtool("test", "rules", page)
    assert not done.returncode, done.stdout + done.stderr


def test_each_of_several_clusters_has_one_leader(promtool: Program, groups: JSON, tmp_path: Path) -> None:
    """In one Prometheus, by their label: one leader each is in order, and the cluster without one is named."""
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(groups))

    def hour(of_second: str, expected: dict[str, JSON]) -> JSON:
        leaders = {
            name.replace('job="muster"', f'job="muster",cluster="{cluster}"'): values
            for cluster, led in (("east", "1x60"), ("west", of_second))
            for name, values in ((_LEASE % ("a", "muster"), led), (_LEASE % ("b", "muster"), "0x60"))
        }
        others = {name: values for name, values in HEALTHY.items() if "leader_election" not in name}
        return _asked(groups, {**others, **leaders}, expected)

    lost = {"MusterNoLeader": {"labels": {"cluster": "west"}, "summary": "Not one controller of muster leads, but 0"}}
    page = tmp_path / "test.yaml"
    page.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [hour("1x60", {}), hour("0x60", lost)]}))
    done = promtool("test", "rules", page)
    assert not done.returncode, done.stdout + done.stderr


def test_queues_of_one_name_in_two_clusters_are_two(promtool: Program, groups: JSON, tmp_path: Path) -> None:
    """In one Prometheus: the queue that is idle in one of them is named, however busy the other one is."""
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(groups))
    idle = {'muster_queue_used{queue="q",resource="cpu"}': "0x60"}
    of_queues = {name: values for name, values in HEALTHY.items() if 'queue="q"' in name}
    series = {name: values for name, values in HEALTHY.items() if name not in of_queues}
    for cluster, otherwise in (("east", {}), ("west", idle)):
        for name, values in {**of_queues, **otherwise}.items():
            series[name.replace('queue="q"', f'queue="q",cluster="{cluster}"')] = values
    summary = 'Queue "q" is idle while 2 gangs wait in it'
    fires = {"MusterQueueIdle": {"labels": {"queue": "q", "cluster": "west"}, "summary": summary}}
    page = tmp_path / "test.yaml"
    page.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [_asked(groups, dict(series), fires)]}))
    done = promtool("test", "rules", page)
    assert not done.returncode, done.stdout + done.stderr


def test_promtool_sees_an_alert_that_does_not_fire(promtool: Program, groups: JSON, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(groups))
    expected = {"MusterNoLeader": {"labels": {}, "summary": "Not one controller of muster leads, but 0"}}
    page = tmp_path / "test.yaml"
    page.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [_asked(groups, dict(HEALTHY), expected)]}))
    assert promtool("test", "rules", page).returncode
