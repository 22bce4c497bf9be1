"""Benchmarks, run by hand, one at a time, on an idle machine: `python -m hack.bench NAME [OPTION ...]`.

`make check` and CI run none of them. Figures are CPU time unless stated otherwise, so that other programs change
them only through the caches. Compare two commits in turns, and by the ratio. `NAME --help` has the goals.
"""

import ast
import importlib
import sys
from pathlib import Path

_SHARED = ("harness", "many")


def _benches() -> dict[str, str]:
    """The first line of each benchmark's docstring, by its name."""
    folder = Path(__file__).parent
    files = [path for path in (*folder.glob("[a-z]*.py"), *folder.glob("*/__init__.py")) if path.stem not in _SHARED]
    names = {path.parent.name if path.name == "__init__.py" else path.stem: path for path in files}
    docs = {name: ast.get_docstring(ast.parse(path.read_text())) or "" for name, path in sorted(names.items())}
    return {name: doc.partition("\n")[0] for name, doc in docs.items()}


def main() -> None:
    """Run the named benchmark, or list all."""
    name, *rest = sys.argv[1:] or [""]
    benches = _benches()
    if name not in benches:
        print(__doc__)
        sys.exit("\n".join(f"  {one:10} {purpose}" for one, purpose in benches.items()))
    importlib.import_module(f"hack.bench.{name}").main(rest)


if __name__ == "__main__":
    main()
