"""`make push`, `make publish`, `make verify` and `make keep-release`."""

import argparse
import os
import sys
from pathlib import Path

from hack.image.build import CHECKOUT, source
from hack.image.errors import ImageError
from hack.image.machine import MACHINES
from hack.release.kept import RELEASES, keep
from hack.release.programs import programs
from hack.release.provenance import BUILDER
from hack.release.publish import Order, publish
from hack.release.verify import found, verify
from hack.testbed.errors import TestbedError
from muster import __version__

_DIST = CHECKOUT / "dist" / "release"
_LAYOUT = CHECKOUT / "dist" / "image" / "oci"


def main(words: list[str] | None = None) -> int:
    """Do what was asked, and return the exit code."""
    arguments = parser().parse_args(words)
    try:
        arguments.run(arguments)
    except (ImageError, TestbedError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    whole = argparse.ArgumentParser(prog="python -m hack.release", description="Publish muster, and verify it.")
    commands = whole.add_subparsers(required=True)
    one = commands.add_parser("push", help="push what `make image` has made, unsigned")
    one.add_argument("registry", help="HOST[:PORT][/FOLDER]")
    one.add_argument("--layout", type=Path, default=_LAYOUT, help="default: dist/image/oci")
    one.set_defaults(run=_push)
    one = commands.add_parser("publish", help="build, push, sign and verify a release")
    one.add_argument("registry", help="HOST[:PORT][/FOLDER]")
    one.add_argument("--key", required=True, help="the private key: a file, or env://VARIABLE")
    one.add_argument("--architectures", default=",".join(MACHINES), help="what the image is for (default: %(default)s)")
    one.add_argument(
        "--builder", default=BUILDER, help="the builder that provenance names: a URI (default: %(default)s)"
    )
    one.add_argument("--output", type=Path, default=_DIST, help="folder (default: dist/release)")
    one.add_argument("--version", help="refuse to publish another version than this one, as a tag names it")
    one.add_argument("--unfinished", action="store_true", help="publish changes that are in no commit")
    one.set_defaults(run=_publish)
    one = commands.add_parser("login", help="log in with REGISTRY_USER and REGISTRY_PASSWORD, as docker login does")
    one.add_argument("registry", help="HOST[:PORT][/FOLDER]")
    one.set_defaults(run=_login)
    one = commands.add_parser("verify", help="verify a release in a registry")
    one.add_argument("registry", help="HOST[:PORT][/FOLDER]")
    one.add_argument("--key", required=True, help="the public key: a file, or env://VARIABLE")
    one.add_argument("--version", default=__version__, help="default: %(default)s")
    one.set_defaults(run=_verify)
    one = commands.add_parser("keep", help="keep this version's chart and wheel, for the tests of upgrades from it")
    one.add_argument("--output", type=Path, default=RELEASES, help="folder of all versions (default: tests/releases)")
    one.set_defaults(run=_keep)
    return whole


def _say(line: str) -> None:
    print(f"== {line}", flush=True)


def _where(arguments: argparse.Namespace) -> str:
    registry: str = arguments.registry
    return registry.removeprefix("oci://").rstrip("/")


def _login(arguments: argparse.Namespace) -> None:
    host = _where(arguments).partition("/")[0]
    try:
        user, password = (os.environ[name] for name in ("REGISTRY_USER", "REGISTRY_PASSWORD"))
    except KeyError as error:
        raise ImageError(f"{error.args[0]} is not set: set it to log in to {host}") from error
    programs(_say).login(host, user, password)
    print(f"logged in to {host}")


def _push(arguments: argparse.Namespace) -> None:
    if not arguments.layout.is_dir():
        raise ImageError(f"there is no image in {arguments.layout}: run make image first")
    name = f"{_where(arguments)}/muster:{__version__}"
    programs(_say, ("crane",)).crane("push", arguments.layout, name)
    print(f"pushed {name}")


def _publish(arguments: argparse.Namespace) -> None:
    architectures = arguments.architectures.split(",")
    if unknown := sorted(set(architectures) - set(MACHINES)):
        raise ImageError(f"there is no image for {', '.join(unknown)}: choose from {', '.join(MACHINES)}")
    if arguments.version not in {None, __version__}:
        raise ImageError(f"{arguments.version} is to be published, and this is muster {__version__}: correct the tag")
    order = Order(
        _where(arguments),
        arguments.key,
        architectures,
        arguments.builder,
        arguments.output,
        unfinished=arguments.unfinished,
    )
    done = publish(order, source(CHECKOUT), programs(_say), _say)
    print(f"published and verified: muster {done.version}, commit {done.commit}")
    for what in done.digests:
        print(f"  {what:<6} {done.name(what)}")
    print(f"  key    {arguments.output / 'cosign.pub'}")


def _verify(arguments: argparse.Namespace) -> None:
    tools = programs(_say)
    there = found(_where(arguments), arguments.version, tools)
    verify(there, arguments.key, tools, _say)
    print(f"verified: muster {there.version} in {there.registry}")


def _keep(arguments: argparse.Namespace) -> None:
    print(f"kept in {keep(programs(_say), arguments.output)}")


if __name__ == "__main__":
    sys.exit(main())
