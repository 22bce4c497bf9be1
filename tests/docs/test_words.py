"""Code, chart and documents use the words of Kubernetes, and none that a reader has to read twice."""

import re
import subprocess
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PRIVATE = re.compile(
    r"\b(nobody|somebody|anybody|everybody|whoever|heeds?|heeded|aside|beside|meanwhile|anew|of which|those who)\b",
    re.IGNORECASE,
)
_WHERE = ("muster/**.py", "controller/**.py", "webhook/**.py", "charts/**.yaml", "charts/**.tpl", "docs/**.md", "*.md")
# Lines of the changelog are written once.
_WRITTEN_ONCE = "CHANGELOG.md"


def test_no_private_word_is_left() -> None:
    listed = subprocess.run(["git", "ls-files", *_WHERE], cwd=_ROOT, capture_output=True, text=True, check=True).stdout
    files = [name for name in listed.split() if name != _WRITTEN_ONCE]
    assert len(files) > 300
    found = [
        f"{name}:{number}: {line.strip()}"
        for name in files
        for number, line in enumerate((_ROOT / name).read_text().splitlines(), 1)
        if _PRIVATE.search(line)
    ]
    assert found == []
