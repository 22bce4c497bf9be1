"""Why no test runs a command that a document shows: what it would need, and what shows the same."""

_PEERS = "a benchmark of three products, in hours; the repository has it at the commit that the page names"
_NO_DOCKER = "docker, skopeo and ctr do not run here; tests/image/test_registries.py reads the archive"
_NO_GITOPS = "neither Argo CD nor Flux runs here; tests/apiserver/test_documented.py has what they would undo"
_BENCH = "a bench, for an idle machine"

BLOCKS: dict[str, dict[str, str]] = {
    "CONTRIBUTING.md": {
        "make setup": "what runs all tests",
        ".venv/bin/python -m hack.testbed up": "tests/testbed/test_life_and_death.py runs it with a state of its own",
    },
    "README.md": {
        "make image ": "for the reader's registry; docs/image.md and docs/releasing.md have the commands one by one",
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

SENTENCES: dict[str, dict[str, str]] = {
    "CHANGELOG.md": {
        "kubectl get podgroups -L muster.dev/state": "docs/reasons.md has it, too",
        "muster doctor --probe": "tests/pairs/test_probe.py",
        "muster explain --what-would-help": "tests/unit/muster/cli/test_what_helps.py",
        "muster plan --cluster --what-if": "tests/unit/muster/cli/test_what_if.py",
        "python -m hack.testbed": "the name of a program; CONTRIBUTING.md has its commands",
    },
    "CONTRIBUTING.md": {"python -m hack.tour": "it writes what tests/e2e/test_demo.py holds"},
    "README.md": {
        "make demo KEEP=1": "docs/tutorial.md begins with it",
        "make demo SCHEDULER=kubernetes": "tests/e2e/test_demo.py runs what it calls",
        "make publish REGISTRY=REGISTRY KEY=cosign.key": "docs/releasing.md has it, too",
    },
    "docs/cli.md": {
        "helm template CHART | muster plan -f -": "for a chart of the reader's",
        "kubectl delete pods,podgroups.scheduling.k8s.io -l muster.dev/probe": "after a `doctor` that was killed; "
        "tests/pairs/test_probe.py ends it in every other way",
        "kubectl kustomize DIRECTORY | muster plan -f -": "for a kustomization of the reader's",
        "muster completion SHELL": "tests/unit/muster/cli/test_completion.py",
        "muster explain KIND/NAME": "the form of a command",
        "muster hold KIND/NAME": "the form of a command",
        "muster migrate-queues --to SOURCE": "the form of a command",
        "muster plan -f FILE": "the form of a command",
        "muster record --out FILE": "the form of a command",
        "muster record --out day.jsonl.gz": "tests/unit/muster/cli/replay/test_record.py holds what it writes",
        "muster replay LOG": "the form of a command",
        "muster test FILE": "the form of a command",
        "muster resume KIND/NAME": "the form of a command",
    },
    "docs/commands.md": {"muster COMMAND --help": "the form of a command; tests/unit/muster/cli/test_examples.py"},
    "docs/denials.md": {"muster plan --strict": "a name; docs/gitops.md has the command"},
    "docs/design-notes.md": {
        "muster doctor --probe": "tests/pairs/test_probe.py",
        "python -m hack.bench admission": _BENCH,
    },
    "docs/gangs.md": {"muster doctor --probe": "tests/pairs/test_probe.py"},
    "docs/gitops.md": {
        """kubectl -n flux-system patch helmrelease muster --type merge -p '{"spec":{"suspend":true}}'""": _NO_GITOPS,
        "muster plan --strict": "a name; the block below has the command",
    },
    "docs/image.md": {
        "make image NAME=REGISTRY/muster": "tests/image/test_builds.py builds by what it calls",
        "python -m hack.image --architecture": "the name of an option; tests/image/test_arm64.py",
    },
    "docs/migrating.md": {
        "muster hold queue/NAME": "the form of a command; docs/tutorial.md has one, which runs",
        "muster plan -f": "a name; docs/tutorial.md has the command",
    },
    "docs/performance.md": {
        "muster replay generated:2": "it takes minutes; tests/unit/muster/cli/replay/test_replay.py replays others",
        "muster replay KTH-SP2-1996.swf.gz": "the log is no part of the project; "
        "tests/unit/muster/cli/replay/test_replay.py replays others",
        "python -m hack.bench drain": "tests/docs/test_performance.py calls what it calls",
        "python -m hack.bench memory": _BENCH,
        "python -m hack.bench reconcile": _BENCH,
        "python -m hack.bench waiting": _BENCH,
        "python -m hack.bench steps": _BENCH,
    },
    "docs/queues.md": {
        "muster hold queue/research": "docs/tutorial.md has another, which runs",
        "muster hold rayjob/demo": "tests/e2e/test_on_hold.py has a RayCluster's",
        "muster migrate-queues --to muster": "tests/apiserver/test_gang_queues.py",
        "muster resume queue/research": "docs/tutorial.md has another, which runs",
        "muster resume rayjob/demo": "tests/e2e/test_on_hold.py has a RayCluster's",
    },
    "docs/reasons.md": {
        "kubectl events --for raycluster/NAME": "the form of a command; docs/tutorial.md has one, which runs",
        "muster explain raycluster/NAME": "the form of a command; docs/tutorial.md has one, which runs",
    },
    "docs/releasing.md": {
        "crane manifest REGISTRY/muster:0.1.0": "tests/image/test_publish.py reads the index",
        "make login REGISTRY=HOST": "tests/image/test_publish.py, to a registry with a login",
        "make verify REGISTRY=REGISTRY KEY=cosign.pub": "tests/image/test_publish.py, with a key of its own",
    },
    "docs/security.md": {"kubectl -n muster-system delete pods --all": "after a theft of tokens"},
    "docs/using.md": {
        "muster explain raycluster/NAME": "the form of a command; docs/tutorial.md has one, which runs",
        "muster hold rayjob/NAME": "the form of a command; docs/tutorial.md has one for a queue",
        "muster plan -f job.yaml": "for a manifest of the reader's",
        "muster resume rayjob/NAME": "the form of a command; docs/tutorial.md has one for a queue",
    },
}
"""By page, by command."""
