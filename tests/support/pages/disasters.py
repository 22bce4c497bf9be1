"""Which tests show each row of docs/runbook.md; paths are below tests/."""

SHOWN: dict[str, tuple[str, ...]] = {
    "all webhooks": (
        "apiserver/test_outage.py::test_not_created_meanwhile",
        "apiserver/test_outage.py::test_created_all_the_same",
        "e2e/test_nudge.py::test_pods_come_soon_after_a_long_outage",
    ),
    "one webhook is killed or hangs": (
        "apiserver/test_replicas.py::test_kill_9_of_one_replica_fails_what_was_under_way_in_it",
        "node/test_muster_in_pods.py::test_a_hung_replica_leaves_the_service_and_is_restarted",
    ),
    "all controllers": ("e2e/test_crash.py::test_controllers_may_come_and_go_while_gangs_wait",),
    "the leader is killed, hangs, or its node is cut off": (
        "node/test_muster_in_pods.py::test_a_killed_leader_is_followed_when_its_lease_is_over",
        "e2e/test_crash.py::test_leader_killed_the_other_takes_over",
        "e2e/test_crash.py::test_the_other_finishes_what_the_killed_leader_began",
        "faults/test_lease.py::test_a_stopped_leader_writes_nothing_when_it_wakes",
        "node/test_muster_in_pods.py::test_a_hung_replica_leaves_the_service_and_is_restarted",
    ),
    "the apiserver or etcd is down, or overloaded": (
        "faults/test_apiserver.py::test_a_restart_is_survived_and_nothing_missed",
        "faults/test_way.py::test_a_server_that_accepts_and_is_silent_is_left",
        "faults/test_apiserver.py::test_an_overloaded_apiserver_is_given_the_time_that_it_asks_for",
        "faults/test_apiserver.py::test_an_etcd_that_is_away_and_comes_back",
    ),
    "etcd is restored from a backup": ("faults/test_apiserver.py::test_a_restored_etcd_is_noticed",),
    "a CRD is deleted": ("faults/test_apiserver.py::test_a_kind_may_come_later_and_go_and_come_back",),
    "a Queue is deleted": ("e2e/test_queue_vanishes.py::test_gang_waits_for_its_queue_to_return",),
    "a Queue is closed, or on hold": (
        "e2e/test_queueing.py::test_a_closed_queue_keeps_what_runs_starts_nothing_and_an_opened_one_goes_on",
        "e2e/test_on_hold.py::test_queue_and_workload_on_hold_one_after_the_other",
    ),
    "a PodGroup is deleted or changed": (
        "unit/controller/test_group_troubles.py::test_a_deleted_group_of_a_running_gang_comes_back_with_its_mark",
        "e2e/test_podgroup_drift.py::test_what_is_musters_is_put_right_and_what_is_not_stays",
    ),
    "PodGroups, marks or gates are refused (quota, policy, another webhook), or fail": (
        "e2e/test_refused_writes.py::test_what_is_refused_keeps_its_gang_whole_and_no_other_from_starting",
        "e2e/test_volcano_webhooks.py::test_a_refused_pod_group_is_said_and_its_gang_starts_when_the_reason_is_gone",
        "unit/controller/test_unwritable.py::test_after_an_outage_all_come_back_in_their_order",
    ),
    "one gang meets a defect of muster's": (
        "unit/controller/test_entering.py::test_a_new_leader_counts_what_its_pod_group_asks_for",
    ),
    "a pod of a running gang, or its node": ("e2e/test_elasticity.py::test_nobody_takes_a_lost_members_place",),
    "no node fits, or Volcano's scheduler is down": (
        "e2e/test_requeue.py::test_a_place_that_cannot_be_used_goes_to_who_waits",
    ),
    "the Secret of the certificates is deleted": (
        "unit/webhook/certificates/test_authority.py::test_a_deleted_secret_is_said_and_what_was_loaded_is_served",
    ),
    "a caBundle is overwritten": (
        "apiserver/test_replicas.py::test_overwritten_ca_bundle_is_written_again_within_a_second",
    ),
    "the certificate has expired": (
        "unit/webhook/certificates/test_rotation.py::test_clock_skew_an_expired_certificate_is_replaced_at_once",
    ),
    "a right of muster's is taken away": (
        "apiserver/test_cannot_know.py::test_pod_is_refused_and_not_let_through_while_a_right_is_missing",
    ),
    "an installation or an upgrade does not come up": (
        "unit/webhook/certificates/test_bundles.py::test_what_is_not_reached_is_not_called_and_asked_again_in_a_second",
        "node/test_muster_in_pods.py::test_an_upgrade_that_runs_out_of_memory_hurts_nobody_and_is_rolled_back",
    ),
    "the only node is drained": ("node/test_muster_in_pods.py::test_drained_and_back",),
    "muster's namespace is deleted": ("apiserver/test_outage.py::test_not_created_meanwhile",),
    "the webhook configurations are deleted": (
        "unit/webhook/certificates/test_authority.py::test_a_configuration_that_was_taken_away_stops_nothing",
    ),
}
