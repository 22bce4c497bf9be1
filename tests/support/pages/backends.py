"""docs/backends.md: which story runs on which scheduler, and the test that shows it on the real one."""

from dataclasses import dataclass

BEGIN, END = "<!-- stories -->\n", "<!-- end -->\n"
COLUMNS = ("Volcano", "coscheduling", "Kubernetes 1.37")
_PAIRS = "pairs/test_coscheduling.py::test_"
_STORY_D = "e2e/test_story_d_raycluster.py::test_"
_CHAOS = "pairs/test_chaos_elsewhere.py::test_nothing_is_half_started_lost_or_stuck"
_KUEUE_VOLCANO = "pairs/test_kueue.py::test_"
_KUEUE = "pairs/test_kueue_elsewhere.py::test_"
_NATIVE = "pairs/test_kubernetes.py::test_"


@dataclass(frozen=True, slots=True)
class Row:
    """A story, and for each of `COLUMNS` the test that shows it (`file.py::name`), or why it is not shown."""

    story: str
    cells: tuple[str, str, str]


ROWS = (
    Row(
        "A RayCluster that fits its queue runs as a gang, all of its pods together (D3)",
        (
            f"{_STORY_D}d3_a_cluster_that_fits_its_queue_runs_as_a_gang",
            f"{_PAIRS}a_ray_cluster_runs_as_a_gang",
            f"{_NATIVE}a_ray_cluster_runs_as_a_gang",
        ),
    ),
    Row(
        "What does not fit waits whole, with a reason, and runs when there is room (D4)",
        (
            f"{_STORY_D}d4_a_second_cluster_waits_whole_and_runs_when_the_first_is_deleted",
            f"{_PAIRS}what_does_not_fit_waits_in_the_order_of_its_queue",
            f"{_NATIVE}what_does_not_fit_waits_in_the_order_of_its_queue",
        ),
    ),
    Row(
        "A small job bypasses a large one that waits (A2)",
        (
            "e2e/test_story_a_pytorchjob.py::test_a2_a_small_job_bypasses_a_waiting_large_one",
            f"{_PAIRS}what_does_not_fit_waits_in_the_order_of_its_queue",
            f"{_NATIVE}what_does_not_fit_waits_in_the_order_of_its_queue",
        ),
    ),
    Row(
        "The main job of the README, with KubeRay's own sample; what can never run is refused with numbers",
        (
            "e2e/test_demo.py::test_the_demo_shows_what_the_readme_shows_and_leaves_nothing",
            "e2e/test_demo.py::test_the_demo_tells_the_same_story_without_volcano",
            "e2e/test_demo.py::test_the_demo_tells_the_same_story_without_volcano",
        ),
    ),
    Row(
        "A lost pod is replaced, and nobody takes its place",
        (
            "e2e/test_elasticity.py::test_nobody_takes_a_lost_members_place",
            f"{_PAIRS}a_lost_worker_is_replaced_at_once",
            f"{_NATIVE}a_lost_pod_is_replaced_also_when_another_has_finished",
        ),
    ),
    Row(
        "Of a gang without nodes nothing is placed, and it says why",
        (
            "e2e/test_queueing.py::test_an_unplaced_gang_lets_others_bypass_it_after_a_while",
            f"{_PAIRS}a_gang_that_finds_no_node_keeps_its_place",
            f"{_NATIVE}a_gang_without_nodes_is_placed_whole_or_not_at_all_and_says_why",
        ),
    ),
    Row(
        "An elastic job starts with its minimum, and grows and shrinks with the room",
        (
            "e2e/test_kind_elastic.py::test_an_elastic_job_starts_with_its_minimum_and_grows_and_shrinks_with_the_room",
            f"{_PAIRS}an_elastic_gang_starts_with_its_head_and_grows_then",
            f"refused: {_NATIVE}what_it_cannot_do_is_refused",
        ),
    ),
    Row(
        "A closed queue keeps what runs and starts nothing",
        (
            "e2e/test_queueing.py::test_a_closed_queue_keeps_what_runs_starts_nothing_and_an_opened_one_goes_on",
            f"{_PAIRS}a_closed_queue_keeps_what_runs_and_starts_nothing",
            f"{_NATIVE}a_closed_queue_keeps_what_runs_and_starts_nothing",
        ),
    ),
    Row(
        "One urgent gang overtakes all that wait (A1)",
        (
            "e2e/test_story_a_pytorchjob.py::test_a1_priority_overtakes_age",
            f"{_PAIRS}priority_overtakes_age",
            f"{_NATIVE}priority_overtakes_age",
        ),
    ),
    Row(
        "A replaced worker starts in a capped queue, and the other gang waits on (C5)",
        (
            "e2e/test_story_c_kubeflow_jobs.py::test_c5_in_a_capped_queue_the_replacement_starts_and_the_other_waits_on",
            f"{_PAIRS}a_replacement_starts_and_the_other_gang_waits_on",
            f"{_NATIVE}a_replacement_starts_and_the_other_gang_waits_on",
        ),
    ),
    Row(
        "An operator that makes gangs by its own flag keeps them: muster stands back, and says so",
        (
            "e2e/test_brownfield.py::test_an_operators_own_gang_while_muster_comes_and_its_flag_goes",
            "pairs/test_coscheduling_flag.py::test_the_operators_own_gangs_are_left_to_it",
            "no operator has a flag for its PodGroups",
        ),
    ),
    Row(
        "muster, the operators and the scheduler are killed at any moment, and no gang starts in part or is lost",
        (
            "e2e/test_chaos.py::test_nothing_is_half_started_lost_or_stuck",
            f"{_CHAOS}[coscheduling]",
            f"{_CHAOS}[kubernetes]",
        ),
    ),
    Row(
        "With Kueue: what it admits runs as a gang, and what it does not waits with its words",
        (
            f"{_KUEUE_VOLCANO}what_kueue_admits_runs_as_a_gang_and_what_it_does_not_waits_with_its_words",
            f"{_KUEUE}what_kueue_admits_runs_as_a_gang_and_what_it_does_not_waits[coscheduling]",
            f"{_KUEUE}what_kueue_admits_runs_as_a_gang_and_what_it_does_not_waits[kubernetes]",
        ),
    ),
    Row(
        "With Kueue: of three admitted clusters and nodes for one, one is placed whole and the others not at all",
        (
            f"{_KUEUE_VOLCANO}of_three_admitted_clusters_one_is_placed_whole_and_without_muster_a_part_of_another",
            f"{_KUEUE}of_three_admitted_clusters_with_room_for_one_no_part_of_the_others_is_placed[coscheduling]",
            f"{_KUEUE}of_three_admitted_clusters_with_room_for_one_no_part_of_the_others_is_placed[kubernetes]",
        ),
    ),
    Row(
        "The cluster moves to another scheduler, then to Kueue: what was there stays with its scheduler",
        ("pairs/test_moving.py::test_gangs_finish_where_they_began", "the same test", "no test"),
    ),
)


def table() -> str:
    """Return the table, with the marks that the page has around it."""
    lines = [f"| story | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += [f"| {row.story} | {' | '.join(map(_cell, row.cells))} |" for row in ROWS]
    return BEGIN + "\n".join(lines) + "\n" + END


def _cell(text: str) -> str:
    words, _, test = text.rpartition(": ") if text.startswith("refused: ") else ("yes", "", text)
    return f"{words}: `{test}`" if "::" in test else text
