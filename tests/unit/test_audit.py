"""What `make audit-dependencies` makes of pip-audit's report."""

import subprocess
import sys

from hack.audit import judge, pins
from tests.docs.test_documents import CHECKOUT

PINNED = {"good": "1.0", "bad": "2.0"}
GOOD = {"name": "good", "version": "1.0", "vulns": []}
FLAW = {"id": "PYSEC-1", "fix_versions": ["2.1", "3.0"], "aliases": ["CVE-1"], "description": "long"}
BAD = {"name": "bad", "version": "2.0", "vulns": [FLAW, {**FLAW, "id": "PYSEC-2", "fix_versions": []}]}


def test_a_known_vulnerability_is_named_with_its_cure() -> None:
    vulnerable, unknown = judge({"dependencies": [GOOD, BAD]}, PINNED)
    assert vulnerable == ["bad 2.0: PYSEC-1, mended in 2.1, 3.0", "bad 2.0: PYSEC-2, mended in no version yet"]
    assert unknown == []


def test_what_was_not_looked_up_is_no_good_news() -> None:
    """Passed over by pip-audit, which ends well then; of another version; or not there at all."""
    passed_over = {"name": "bad", "skip_reason": "Dependency not found on PyPI and could not be audited: bad (2.0)"}
    for rest in ([passed_over], [{**BAD, "version": "2.1", "vulns": []}], []):
        assert judge({"dependencies": [GOOD, *rest]}, PINNED) == ([], ["bad"])


def test_every_locked_package_is_asked_about() -> None:
    """By the names that pip-audit gives them back with."""
    for name in ("runtime", "dev", "audit"):
        text = (CHECKOUT / f"requirements/{name}.txt").read_text()
        assert len(pins(text)) == text.count("==")
        assert all(package == package.lower().replace("_", "-") for package in pins(text))


def test_where_no_list_is_reached_it_fails_in_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hack.audit", "--program", "false"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "no audit was made: pypi was not asked: no output\n"
