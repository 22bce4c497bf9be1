"""Publishes a release: image, chart, SBOMs and provenance, signed; then verifies all of it in the registry.

The release fails if the registry has other content under the same version, which is never overwritten.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.chart import CHART
from hack.image.build import Built, Source, build
from hack.image.errors import ImageError
from hack.image.machine import MACHINES
from hack.image.oci import index
from hack.release.programs import Programs, is_loopback, packed_chart
from hack.release.provenance import predicate
from hack.release.verify import CYCLONEDX, SLSA, Published, verify

# Signs with the key alone: no transparency log, no authority and no list of trusted ones is asked. cosign would fetch
# such a list, and wait for it, where it had a --signing-config without a log instead.
_ALONE = ("--yes", "--use-signing-config=false", "--tlog-upload=false")


@dataclass(frozen=True, slots=True)
class Order:
    """An order to publish: `registry` is HOST[:PORT][/FOLDER], `key` what cosign calls a key reference."""

    registry: str
    key: str
    architectures: Sequence[str]
    builder: str
    output: Path
    unfinished: bool = False
    """True if a checkout with uncommitted changes may be published, as in tests."""


def publish(order: Order, what: Source, tools: Programs, progress: Callable[[str], None]) -> Published:
    """Build, push, sign and verify; write what was published to `order.output`. Raises ImageError."""
    if what.commit.endswith("-dirty") and not order.unfinished:
        raise ImageError("the checkout has changes that are in no commit: commit them, or publish with UNFINISHED=1")
    if "COSIGN_PASSWORD" not in os.environ:
        raise ImageError("COSIGN_PASSWORD is not set: set it to the password of the key, which may be empty")
    started = time.time()
    images = [_built(what, name, order, progress) for name in order.architectures]
    (version,) = {one.version for one in images}
    chart = packed_chart(CHART, order.output, tools)
    if chart.name != f"muster-{version}.tgz":
        raise ImageError(f"the chart is {chart.name}, and muster is {version}: give both one version")
    made = _Push(order, tools, version, progress)
    digests = made.images(images)
    digests["chart"] = made.chart(chart)
    published = Published(order.registry, version, what.commit, digests)
    statement = predicate(what, version, images, builder=order.builder, started=started, finished=time.time())
    (order.output / "provenance.json").write_bytes(statement)
    progress("signing")
    made.sign(published, order.output / "provenance.json", {one.machine.debian: _sbom(order, one) for one in images})
    public = order.output / "cosign.pub"
    public.write_text(tools.cosign("public-key", "--key", order.key))
    verify(published, str(public), tools, progress)
    (order.output / "published.json").write_text(published.text())
    return published


def _built(what: Source, name: str, order: Order, progress: Callable[[str], None]) -> Built:
    progress(f"building the image for {name}")
    made = build(what, name="muster", progress=progress, machine=MACHINES[name])
    made.write(order.output / name)
    return made


def _sbom(order: Order, one: Built) -> Path:
    return order.output / one.machine.debian / "sbom.cdx.json"


@dataclass(frozen=True, slots=True)
class _Push:
    order: Order
    tools: Programs
    version: str
    progress: Callable[[str], None]

    def images(self, images: Sequence[Built]) -> dict[str, str]:
        """Push one index with all images; return its digest (as `image`), and theirs by architecture."""
        layout = self.order.output / "oci"
        shutil.rmtree(layout, ignore_errors=True)
        digest, tree = index([one.image for one in images])
        tree.write(layout)
        name = f"{self.order.registry}/muster:{self.version}"
        self._new(name, digest)
        self.progress(f"pushing {name}")
        self.tools.crane("push", "--index", layout, name)
        if (found := self.tools.crane("digest", name).strip()) != digest:
            raise ImageError(f"{name} is {found} in the registry, and should be {digest}: another client pushes there")
        return {"image": digest} | {one.machine.debian: one.image.digest for one in images}

    def chart(self, packed: Path) -> str:
        """Push the chart; return its digest. helm writes the time into it, so one that is there is compared whole."""
        name = f"{self.order.registry}/charts/muster:{self.version}"
        plain = ["--plain-http"] if is_loopback(self.order.registry) else []
        if there := self._digest(name):
            with tempfile.TemporaryDirectory() as folder:
                repository = f"oci://{name.removesuffix(f':{self.version}')}"
                self.tools.helm("pull", repository, f"--version={self.version}", *plain, "--destination", folder)
                if (Path(folder) / packed.name).read_bytes() != packed.read_bytes():
                    raise ImageError(f"{name} is there and is another chart: publish under another version")
            return there
        self.progress(f"pushing {name}")
        self.tools.helm("push", packed, f"oci://{self.order.registry}/charts", *plain)
        return self.tools.crane("digest", name).strip()

    def sign(self, published: Published, provenance: Path, sboms: dict[str, Path]) -> None:
        """Sign everything, and attach provenance and bills of materials, signed, as referrers."""
        how = (*_ALONE, f"--key={self.order.key}")
        for what in published.digests:
            name = published.name(what)
            self.tools.cosign("sign", *how, name)
            self.tools.cosign("attest", *how, f"--type={SLSA}", f"--predicate={provenance}", name)
            if what in sboms:
                self.tools.cosign("attest", *how, f"--type={CYCLONEDX}", f"--predicate={sboms[what]}", name)

    def _new(self, name: str, digest: str) -> None:
        there = self._digest(name)
        if there not in {"", digest}:
            raise ImageError(f"{name} is there and is {there}, not {digest}: publish under another version")

    def _digest(self, name: str) -> str:
        """The digest under that name in the registry; empty if there is none."""
        repository, _, tag = name.rpartition(":")
        try:
            tags = self.tools.crane("ls", repository).split()
        except ImageError as error:
            if "NAME_UNKNOWN" in str(error) or "404" in str(error):
                return ""
            raise
        return self.tools.crane("digest", name).strip() if tag in tags else ""
