"""State folders of testbeds that have ended: the oldest are removed, but none while its own testbed clears it."""

import os
from pathlib import Path

from hack.testbed.cluster import _forget_old
from hack.testbed.lifecycle import take_down


def test_a_folder_that_is_being_cleared_is_not_removed_by_who_starts_another(tmp_path: Path) -> None:
    """It was made long before those that came and went while it ran."""
    for number in range(25):
        folder = tmp_path / f"run-{number:02}"
        folder.mkdir()
        os.utime(folder, (number, number))
    take_down(tmp_path / "run-00")
    _forget_old(tmp_path)
    assert (tmp_path / "run-00").exists()
    assert len(list(tmp_path.iterdir())) == 20
