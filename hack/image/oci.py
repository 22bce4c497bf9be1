"""Layers and configuration as an OCI image layout, which is at the same time what `docker load` reads."""

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hack.image.machine import Machine
from hack.image.tree import Tree

_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
# Neither root nor a user of the node; other images without a shell have 65532, too.
_USER = "65532:65532"
_GZIP = 31


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer as it is shipped. `diff_id` is the digest of the tar, which no compressor can change."""

    data: bytes
    diff_id: str
    size: int
    """Bytes of its files when unpacked."""
    made_by: str

    @property
    def digest(self) -> str:
        """The digest of the compressed layer."""
        return _digest(self.data)

    def tree(self) -> Tree:
        """Return its files."""
        return Tree.of_tar(zlib.decompress(self.data, _GZIP))


@dataclass(frozen=True, slots=True)
class Image:
    """A whole image: the blobs by digest, and the small files that lead to them."""

    blobs: Mapping[str, bytes]
    index: bytes
    docker_manifest: bytes
    digest: str
    """The digest of the manifest: its name in a registry."""
    identity: str
    """The digest of the configuration: docker's image ID; it depends on the content and on no compressor."""
    size: int

    @property
    def config(self) -> dict[str, Any]:
        """The configuration for a runtime: user, environment, command, labels, layers."""
        content: dict[str, Any] = json.loads(self.blobs[self.identity])
        return content

    def tree(self) -> Tree:
        """Return the layout's files."""
        tree = Tree()
        tree.file("oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}))
        tree.file("index.json", self.index)
        tree.file("manifest.json", self.docker_manifest)
        for digest, data in self.blobs.items():
            tree.file(f"blobs/{digest.replace(':', '/')}", data)
        return tree

    def archive(self) -> bytes:
        """Return the layout as one tar."""
        return self.tree().tar()


def layer(tree: Tree, made_by: str) -> Layer:
    """Return a layer of these files."""
    tar = tree.tar()
    # The gzip module's header differs between versions of Python; zlib's own has neither time nor name.
    compressor = zlib.compressobj(9, zlib.DEFLATED, _GZIP)
    return Layer(compressor.compress(tar) + compressor.flush(), _digest(tar), tree.size, made_by)


def image(
    layers: Sequence[Layer], machine: Machine, *, created: str, name: str, tag: str, labels: Mapping[str, str]
) -> Image:
    """Return the image of these layers, lowest first, known as `name:tag` where it is loaded."""
    config = _json(
        {
            "created": created,
            "architecture": machine.debian,
            "os": "linux",
            "config": {
                "User": _USER,
                "Env": ["PATH=/usr/local/bin:/usr/bin", "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1"],
                "Cmd": ["muster", "version"],
                "WorkingDir": "/",
                "Labels": dict(labels),
            },
            "rootfs": {"type": "layers", "diff_ids": [one.diff_id for one in layers]},
            "history": [{"created": created, "created_by": one.made_by} for one in layers],
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [_descriptor(_LAYER, one.data) for one in layers],
            "annotations": dict(labels),
        }
    )
    known_as = {"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": f"{name}:{tag}"}
    platform = {"architecture": machine.debian, "os": "linux"}
    index = {
        "schemaVersion": 2,
        "mediaType": _INDEX,
        "manifests": [{**_descriptor(_MANIFEST, manifest), "platform": platform, "annotations": known_as}],
    }
    blobs = {_digest(data): data for data in (config, manifest, *(one.data for one in layers))}
    docker = {
        "Config": _blob(config),
        "RepoTags": [f"{name}:{tag}"],
        "Layers": [_blob(one.data) for one in layers],
    }
    return Image(
        blobs, _json(index), _json([docker]), _digest(manifest), _digest(config), sum(one.size for one in layers)
    )


def index(images: Sequence[Image]) -> tuple[str, Tree]:
    """Return one index of images for several architectures: its digest in a registry, and its files as a layout."""
    manifests = [dict(json.loads(one.index)["manifests"][0]) for one in images]
    for manifest in manifests:
        # Where an image is known by is no matter of the index.
        del manifest["annotations"]
    content = _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": manifests})
    tree = Tree()
    tree.file("oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}))
    tree.file("index.json", content)
    for one in images:
        for digest, data in one.blobs.items():
            tree.file(f"blobs/{digest.replace(':', '/')}", data)
    return _digest(content), tree


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _blob(data: bytes) -> str:
    return f"blobs/{_digest(data).replace(':', '/')}"


def _descriptor(media_type: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(data), "size": len(data)}


def _json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
