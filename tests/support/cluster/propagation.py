"""Waits for what the apiserver and muster's webhook hear of a moment later, each by a watch of its own."""

from hack.testbed import wait_for
from tests.support.cluster.scene import PATIENCE, Scene
from tests.support.cluster.verbs import Applied


def await_right(scene: Scene, user: str, verb: str, resource: str) -> None:
    """Wait until what a role grants in the namespace counts; `resource` is "plural" or "plural.group"."""
    name, _, group = resource.partition(".")
    asked = {"namespace": scene.namespace, "verb": verb, "group": group, "resource": name}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": asked},
    }
    wait_for(
        f"{user} to be allowed to {verb} {resource}",
        lambda: scene.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"],
        PATIENCE,
    )


def await_accepted(scene: Scene, workload: Applied) -> None:
    """Wait until this could be created: the webhook knows what has changed in its favour."""
    scene.wait("it to be accepted", lambda: scene.ask(workload, dry_run=True).ok)


def await_said(scene: Scene, workload: Applied, words: str) -> None:
    """Wait until who creates this would be told these words, by a refusal or a warning."""
    scene.wait(f"the words {words!r}", lambda: any(words in line for line in scene.told(workload)))
