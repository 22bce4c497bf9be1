"""A helper is found in the index of tests.support, so that nobody writes it twice."""

import re
from pathlib import Path

import tests.support

_FOLDER = Path(tests.support.__file__).parent


def test_every_module_stands_in_the_index_below_its_package() -> None:
    listed, package = set(), ""
    for line in (tests.support.__doc__ or "").splitlines():
        if found := re.match(r"(\w+): \S", line):
            package = found[1]
        elif found := re.match(r"- (\w+): \S", line):
            listed.add((package, found[1]))
    modules = {(path.parent.name, path.stem) for path in _FOLDER.glob("*/*.py") if path.stem != "__init__"}
    assert listed == modules
