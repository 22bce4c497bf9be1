"""`make publish` against a real registry: what comes there, what is signed, and what is noticed when it is forged."""

import json
import re
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import muster
from hack.chart import CHART
from hack.image.build import CHECKOUT, Built, Source, build, source
from hack.image.errors import ImageError
from hack.image.machine import MACHINES
from hack.release import verify as verification
from hack.release.programs import Programs, is_loopback, packed_chart, programs
from hack.release.provenance import BUILD_TYPE, BUILDER
from hack.release.publish import Order
from hack.release.publish import publish as publish_to
from hack.release.verify import Published, found
from tests.support.cases import cases
from tests.support.cluster.registry import PASSWORD, USER, Registry, serving
from tests.support.pages.blocks import block

# Both images, and a dozen signatures; `make test` does without what signs.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

_CHART = f"charts/muster:{muster.__version__}"


@pytest.fixture(scope="module")
def tools() -> Programs:
    return programs(print)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """It asks for a login, and `make login` has given it; the account's own logins are left alone."""
    with serving(tmp_path_factory.mktemp("registry"), login=True) as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_CONFIG", str(tmp_path_factory.mktemp("docker")))
        patch.setenv("REGISTRY_USER", USER)
        patch.setenv("REGISTRY_PASSWORD", PASSWORD)
        done = make("login", f"REGISTRY={running.address}/team")
        assert done.returncode == 0, done.stderr
        yield running


@pytest.fixture(scope="module")
def keys(tools: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with cosign.key and cosign.pub, and with another.key and another.pub."""
    folder = tmp_path_factory.mktemp("keys")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COSIGN_PASSWORD", "of a test")
        for name in ("cosign", "another"):
            program, *words = block("docs/releasing.md", "cosign generate-key-pair").split()
            assert program == "cosign"
            tools.cosign(*words, f"--output-key-prefix={folder / name}")
        yield folder


def publish(registry: Registry, keys: Path, output: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """As the page says, of this checkout as it stands."""
    shown = block("docs/releasing.md", "make publish").replace("HOST/FOLDER", f"{registry.address}/team")
    _, *words = shown.replace("cosign.key", str(keys / "cosign.key")).split()
    return make(*words, f"OUTPUT={output}", "UNFINISHED=1", *more)


def make(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *words], cwd=CHECKOUT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def output(registry: Registry, keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make publish` wrote."""
    folder = tmp_path_factory.mktemp("release")
    done = publish(registry, keys, folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def published(output: Path) -> Published:
    return Published(**json.loads((output / "published.json").read_text()))


@pytest.fixture(scope="module")
def images(image: Built) -> dict[str, Built]:
    others = {name: one for name, one in MACHINES.items() if one != image.machine}
    made = {name: build(image.source, name="muster", progress=print, machine=one) for name, one in others.items()}
    return made | {image.machine.debian: image}


def test_one_name_leads_to_an_image_for_each_architecture(
    published: Published, tools: Programs, images: dict[str, Built]
) -> None:
    """And every byte of them is there."""
    name = f"{published.registry}/muster:{muster.__version__}"
    said = json.loads(tools.crane("manifest", name))["manifests"]
    assert {one["platform"]["architecture"]: one["digest"] for one in said} == {
        name: one.image.digest for name, one in images.items()
    }
    assert tools.crane("digest", name).strip() == published.digests["image"]
    for architecture in images:
        tools.crane("validate", "--remote", published.name(architecture))


def test_the_chart_comes_back_as_it_was_packed(published: Published, tools: Programs, tmp_path: Path) -> None:
    where = f"oci://{published.registry}/charts/muster"
    tools.helm("pull", where, f"--version={muster.__version__}", "--plain-http", "--destination", tmp_path)
    (pulled,) = tmp_path.glob("*.tgz")
    packed = packed_chart(CHART, tmp_path / "again", tools)
    assert (pulled.name, pulled.read_bytes()) == (packed.name, packed.read_bytes())
    with tarfile.open(packed) as archive:
        files = {member.name.removeprefix("muster/") for member in archive}
    assert files == {str(path.relative_to(CHART)) for path in CHART.rglob("*") if path.is_file()}


def test_signatures_and_statements_refer_to_what_they_are_of(published: Published, tools: Programs) -> None:
    """As OCI's referrers: a signature and the provenance of each part, and of each image its bill of materials."""
    for what in published.digests:
        kinds = [
            one["annotations"]["dev.sigstore.bundle.predicateType"] for one in referrers(published.name(what), tools)
        ]
        expected = ["https://sigstore.dev/cosign/sign/v1", "https://slsa.dev/provenance/v1"]
        if what not in {"image", "chart"}:
            expected.insert(0, "https://cyclonedx.org/bom")
        assert sorted(kinds) == expected, what


def referrers(name: str, tools: Programs) -> list[dict[str, Any]]:
    """What refers to a digest: this registry lists it under a tag, as OCI says for those that cannot be asked."""
    repository, _, digest = name.partition("@")
    listed = json.loads(tools.crane("manifest", f"{repository}:{digest.replace(':', '-')}"))["manifests"]
    manifests = [json.loads(tools.crane("manifest", f"{repository}@{one['digest']}")) for one in listed]
    assert {one["subject"]["digest"] for one in manifests} == {digest}
    return manifests


def test_provenance_names_the_commit_and_every_part(
    output: Path, published: Published, images: dict[str, Built]
) -> None:
    said = json.loads((output / "provenance.json").read_text())
    definition = said["buildDefinition"]
    assert definition["buildType"] == BUILD_TYPE
    assert definition["externalParameters"] == {
        "version": muster.__version__,
        "commit": published.commit,
        "architectures": list(MACHINES),
    }
    parts = {
        (one["purl"], one["hashes"][0]["content"])
        for image in images.values()
        for one in json.loads(image.sbom)["components"]
        if one["name"] != "muster"
    }
    listed = [(one["uri"], one["digest"]["sha256"]) for one in definition["resolvedDependencies"] if "uri" in one]
    assert sorted(listed) == sorted(parts)
    commit = source(CHECKOUT).commit
    # Somebody may change a file while the test runs.
    assert published.commit.removesuffix("-dirty") == commit.removesuffix("-dirty")


def test_who_has_the_public_key_verifies_it_from_the_registry_alone(published: Published, keys: Path) -> None:
    where = [f"REGISTRY={published.registry}", f"KEY={keys / 'cosign.pub'}"]
    done = make("verify", *where)
    assert done.returncode == 0, done.stderr
    assert f"verified: muster {muster.__version__} in {published.registry}" in done.stdout


def test_a_mirror_with_all_tags_is_verified_like_the_original(
    published: Published, keys: Path, tools: Programs, tmp_path: Path
) -> None:
    """By the commands of docs/image.md."""
    commands = block("docs/image.md", "crane copy --all-tags").splitlines()
    with serving(tmp_path) as mirror:
        where = f"{mirror.address}/mirror"
        for command in commands:
            tools.crane(*command.replace("REGISTRY", published.registry).replace("MIRROR", where).split()[1:])
        done = make("verify", f"REGISTRY={where}", f"KEY={keys / 'cosign.pub'}")
    assert done.returncode == 0, done.stderr


def test_the_documented_commands_verify_it(published: Published, keys: Path, tools: Programs) -> None:
    """As they stand on the page; the digest that the reader looks up is that of the image for amd64."""
    shown = (
        block("docs/releasing.md", "cosign verify --key"),
        block("docs/releasing.md", "cosign verify-attestation --key cosign.pub --insecure-ignore-tlog=true --type s"),
        block("docs/releasing.md", "cosign verify-attestation --key cosign.pub --insecure-ignore-tlog=true --type c"),
    )
    digest = published.name("amd64").rpartition("sha256:")[2]
    own = {"REGISTRY": published.registry, "DIGEST": digest, "cosign.pub": str(keys / "cosign.pub")}
    for command in "".join(shown).splitlines():
        words = command.split()[1:]
        tools.cosign(*(reduce(lambda text, word: text.replace(word, own[word]), own, word) for word in words))


def test_another_key_verifies_nothing(published: Published, keys: Path, tools: Programs) -> None:
    with pytest.raises(ImageError, match="cosign verify failed"):
        verification.verify(published, str(keys / "another.pub"), tools, print)


@pytest.mark.parametrize("what", ["image", "amd64", "chart"])
def test_what_was_put_in_its_place_is_noticed(published: Published, keys: Path, tools: Programs, what: str) -> None:
    """Somebody who can push, and has no key: other files, under the same name."""
    put = f"{published.name(what).partition('@')[0]}:forged"
    tools.crane("mutate", published.name("amd64"), "--label=forged=yes", f"--tag={put}")
    forged = replace(published, digests={**published.digests, what: tools.crane("digest", put).strip()})
    with pytest.raises(ImageError, match="cosign verify failed"):
        verification.verify(forged, str(keys / "cosign.pub"), tools, print)


def test_one_image_in_place_of_the_index_is_noticed(published: Published, tools: Programs) -> None:
    """It is signed, but it is not for every machine."""
    tools.crane("copy", published.name("amd64"), f"{published.registry}/muster:alone")
    with pytest.raises(ImageError, match="muster:alone is no index of images"):
        found(published.registry, "alone", tools)


def test_provenance_of_another_version_is_noticed(published: Published, keys: Path, tools: Programs) -> None:
    """An older release, signed by the same key, under the name of a newer one."""
    newer = replace(published, version="9.9.9")
    with pytest.raises(ImageError, match=f"has the provenance of muster {re.escape(muster.__version__)}"):
        verification.verify(newer, str(keys / "cosign.pub"), tools, print)


def test_a_version_is_one_thing(registry: Registry, keys: Path, published: Published, tmp_path: Path) -> None:
    """An image for fewer architectures is another one."""
    done = publish(registry, keys, tmp_path, "ARCHITECTURES=amd64")
    assert done.returncode == 2
    assert f"/muster:{muster.__version__} is there and is {published.digests['image']}" in done.stderr
    assert "publish under another version" in done.stderr


def test_without_the_keys_password_nothing_is_built(
    tools: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cosign would ask for it, and wait."""
    monkeypatch.delenv("COSIGN_PASSWORD", raising=False)
    with pytest.raises(ImageError, match="COSIGN_PASSWORD is not set: set it to the password of the key, which may be"):
        publish_to(order(tmp_path), Source(CHECKOUT, "abc", 0), tools, print)


def test_a_checkout_with_changes_is_no_release(tools: Programs, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="the checkout has changes that are in no commit: commit them"):
        publish_to(order(tmp_path), Source(CHECKOUT, "abc-dirty", 0), tools, print)


def order(output: Path) -> Order:
    return Order("127.0.0.1:1/team", "no.key", list(MACHINES), BUILDER, output)


@cases(
    "registry, local",
    ("loopback", "127.0.0.1:5000/team", True),
    ("its name", "localhost/team", True),
    ("IPv6", "[::1]:5000", True),
    ("another machine", "10.0.0.1:5000/team", False),
    ("a name that begins alike", "localhost.test:5000", False),
)
def test_only_loopback_may_do_without_tls(registry: str, local: bool) -> None:
    assert is_loopback(registry) is local
