"""Why no test runs a command that a document shows: what it would need, and what shows the same."""

_PEERS = "a benchmark of three products, in hours; the repository has it at the commit that the page names"
_NO_DOCKER = "docker, skopeo and ctr do not run here; tests/image/test_registries.py reads the archive"
_NO_GITOPS = "neither Argo CD nor Flux runs here; tests/apiserver/test_documented.py has what they would undo"

BLOCKS: dict[str, dict[str, str]] = {
    "CONTRIBUTING.md": {
        "make setup": "what runs all tests",
        ".venv/bin/python -m hack.testbed up": "tests/testbed/test_life_and_death.py runs it with a state of its own",
    },
    "README.md": {
        "make image ": "for the reader's registry; docs/image.md and docs/releasing.md have the commands one by one",
    },
    "docs/install.md": {
        "make image": "for the reader's registry; tests/image/test_registries.py pushes what it makes",
        "kubectl apply": "tests/e2e/test_tutorial.py runs both commands",
        "make cli-wheel": "tests/unit/test_cli_wheel.py builds and installs it",
    },
    "docs/comparison.md": {"$ python -m hack.bench.peers": _PEERS},
    "docs/gitops.md": {
        "helm template muster": "tests/chart/test_uninstall.py renders it",
        "kubectl -n argocd patch": _NO_GITOPS,
        "flux suspend helmrelease": _NO_GITOPS,
    },
    "docs/image.md": {
        "make image": "tests/image/test_builds.py builds by what it calls",
        "skopeo copy": _NO_DOCKER,
        "docker load": _NO_DOCKER,
        "ctr --namespace": _NO_DOCKER,
        "docker build": "tests/image/test_builds.py has the files that the Dockerfile makes; docker does not run here",
    },
}
"""By page, by how a block begins."""

SENTENCES = {
    'kubectl -n flux-system patch helmrelease muster --type merge -p \'{"spec":{"suspend":true}}\'': _NO_GITOPS,
    "kubectl -n muster-system delete pods --all": "after a theft of tokens",
    "kubectl create secret tls": "certificates of the reader; tests/apiserver/test_replicas.py mounts such",
    "kubectl -n muster-system delete job muster-uninstall": "after an uninstall that failed: tests/node/test_order.py",
    "kubectl delete pods,podgroups.scheduling.k8s.io -l muster.dev/probe": "after a `doctor` that was killed; "
    "tests/pairs/test_probe.py ends it in every other way",
    "make demo SCHEDULER=kubernetes": "tests/e2e/test_demo.py runs what it calls",
    "muster hold rayjob/demo": "tests/e2e/test_on_hold.py has a RayCluster",
    "muster migrate-queues --to muster": "tests/apiserver/test_gang_queues.py",
    "muster record --out day.jsonl.gz": "tests/unit/muster/cli/replay/test_record.py holds what it writes",
    "muster replay generated:2": "it takes minutes; tests/unit/muster/cli/replay/test_replay.py replays others",
    "muster resume rayjob/demo": "tests/e2e/test_on_hold.py has a RayCluster",
}
"""By command, on any page."""
