"""`make image`: builds muster's image, or with --root its files, for the Dockerfile."""

import argparse
import sys
import time
from pathlib import Path

from hack.image.build import CHECKOUT, Built, build, source
from hack.image.errors import ImageError
from hack.image.machine import MACHINES

_MEGABYTE = 1_000_000


def main() -> int:
    """Build, say what came out, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m hack.image", description="Build muster's image.")
    parser.add_argument("--name", default="muster", help="repository that the image is known by (default: %(default)s)")
    parser.add_argument("--commit", default="", help="the commit that is built; by default git's HEAD")
    parser.add_argument("--architecture", choices=MACHINES, help="what the image is for; else this machine")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--output", type=Path, default=CHECKOUT / "dist" / "image", help="folder (default: dist/image)")
    place.add_argument("--root", type=Path, help="write the image's files to this new folder instead")
    arguments = parser.parse_args()
    started = time.monotonic()
    try:
        built = build(
            source(CHECKOUT, arguments.commit),
            name=arguments.name,
            progress=lambda line: print(f"== {line}"),
            machine=MACHINES.get(arguments.architecture),
        )
        if arguments.root:
            _write_root(built, arguments.root)
            return 0
        archive = built.write(arguments.output)
    except ImageError as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    made = built.image
    print(
        f"{arguments.name}:{built.version}  {made.size / _MEGABYTE:.0f} MB unpacked, "
        f"{archive.stat().st_size / _MEGABYTE:.0f} MB packed, in {time.monotonic() - started:.0f} s\n"
        f"  digest   {made.digest}\n  image ID {made.identity}\n  archive  {archive}  (OCI layout and docker load)\n"
        f"  SBOM     {archive.with_name('sbom.cdx.json')}"
    )
    return 0


def _write_root(built: Built, root: Path) -> None:
    if root.exists():
        raise ImageError(f"{root} is there already: name a new folder")
    for one in built.layers:
        one.tree().write(root)


if __name__ == "__main__":
    sys.exit(main())
