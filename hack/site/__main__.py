"""Builds the site of the documents: `make docs`.

Sphinx's warnings are errors: a link to a page or a heading that is not there, a page that is in no menu. Then the
pages themselves are read: whatever a browser would load from another host is an error too.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hack.site.accessible import mend
from hack.site.loads import foreign
from hack.testbed.errors import TestbedError
from hack.testbed.npm import MERMAID

_CHECKOUT = Path(__file__).parents[2]
_HERE = Path(__file__).parent
_FIRST = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>muster</title>
<meta http-equiv="refresh" content="0; url=docs/index.html"></head>
<body><a href="docs/index.html">The documents of muster</a></body></html>
"""


def build(program: str, out: Path) -> list[str]:
    """Build the site in a folder, which is emptied first; return the faults found in it, in lines.

    Raises TestbedError where mermaid cannot be fetched.
    """
    with tempfile.TemporaryDirectory() as folder:
        static, made = Path(folder) / "static", Path(folder) / "site"
        shutil.copytree(_HERE / "static", static)
        shutil.copy(MERMAID.ensured(print), static)
        environment = {**os.environ, "PYTHONPATH": str(_CHECKOUT), "MUSTER_SITE_STATIC": str(static)}
        done = subprocess.run(
            [
                *(program, "--builder=html", "--quiet", "--fail-on-warning", "--keep-going", f"--conf-dir={_HERE}"),
                *(f"--doctree-dir={folder}/doctrees", str(_CHECKOUT), str(made)),
            ],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        wrong = done.stderr.splitlines() if done.returncode else []
        if done.returncode and not wrong:
            wrong = done.stdout.splitlines()
        if not wrong:
            (made / "index.html").write_text(_FIRST)
            for page in made.rglob("*.html"):
                page.write_text(mend(page.read_text()))
            wrong = foreign(made)
        if not wrong:
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(made, out)
    return wrong


def main() -> None:
    """Exit with 0 when the site is built and nothing is wrong with it."""
    parser = argparse.ArgumentParser(prog="hack.site", description="The site of the documents.")
    parser.add_argument("--program", default="sphinx-build", help="sphinx-build")
    parser.add_argument("--out", type=Path, default=_CHECKOUT / "dist" / "site", help="the folder of the site")
    given = parser.parse_args()
    try:
        wrong = build(given.program, given.out)
    except TestbedError as error:
        sys.exit(f"docs: {error}")
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        sys.exit(f"docs: {len(wrong)} lines above say what to mend; no site was built")
    print(f"{given.out}: {sum(1 for _ in given.out.rglob('*.html'))} pages")


if __name__ == "__main__":
    main()
