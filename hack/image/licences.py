"""The licences of Debian packages: as their copyright files name them, or as those were read that are free text.

What was read counts only while the words by which it was recognised still stand there. It is the licence of what the
image takes of a package, as a whole; parts under terms of their own are named in the same file, which is in the image.
"""

import re
from dataclasses import dataclass
from typing import Any

_FIELD = re.compile(r"^License:[ \t]*(\S[^\n]*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Read:
    """An SPDX expression, and the words of the copyright file that say so, with any white space between them."""

    expression: str
    words: str


_PYTHON = Read("Python-2.0", "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2")
_GCC = Read("GPL-3.0-or-later WITH GCC-exception-3.1", "with version 3.1 of the GCC Runtime Library Exception")
READ = {
    "base-files": Read("GPL-2.0-or-later", "either version 2 of the License, or (at your option) any later version"),
    "python3.11-minimal": _PYTHON,
    "libpython3.11-minimal": _PYTHON,
    "libpython3.11-stdlib": _PYTHON,
    # Its utilities, under another licence, are not taken.
    "libc6": Read("LGPL-2.1-or-later", "either version 2.1 of the License, or (at your option) any later version"),
    "gcc-12-base": _GCC,
    "libgcc-s1": _GCC,
    "libstdc++6": _GCC,
}
"""The packages whose copyright file no machine can read."""


def licences(package: str, text: bytes) -> list[dict[str, Any]]:
    """Return CycloneDX's `licenses` of a package with this copyright file; none where nobody has read what it says now.

    Names that Debian gives in a machine-readable file are not always SPDX's.
    """
    content = text.decode(errors="replace")
    if content.startswith("Format:"):
        return [{"license": {"name": name}} for name in sorted({name.strip() for name in _FIELD.findall(content)})]
    read = READ.get(package)
    if read is None or read.words not in " ".join(content.split()):
        return []
    return [{"expression": read.expression, "acknowledgement": "concluded"}]
