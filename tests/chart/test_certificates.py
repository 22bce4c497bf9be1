"""Whose certificates the webhook serves, as values of the chart."""

import base64
from pathlib import Path
from typing import Any

from tests.support.cases import cases
from tests.support.chart.rendered import Program, Render, Rendered

PEM = "-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n"
CERT_MANAGER = "certManager.enabled=true"
OWN_SECRET = "webhook.existingSecret=mine"  # noqa: S105 - the name of one
LOOK = ("get", "list", "watch")


def pod(rendered: Rendered) -> dict[str, Any]:
    spec: dict[str, Any] = rendered.one("Deployment", "muster-webhook")["spec"]["template"]["spec"]
    return spec


@cases(
    "value, secret",
    ("cert-manager", CERT_MANAGER, "muster-webhook-cert"),
    ("a Secret of one's own", OWN_SECRET, "mine"),
)
def test_certificates_of_others_are_mounted_and_only_read(render: Render, value: str, secret: str) -> None:
    """No Secret of muster's, no right to any, and a policy that keeps it from the caBundles."""
    rendered = render(value)
    assert not [item for item in rendered.documents if item["kind"] == "Secret"]
    assert rendered.rules("Role", "muster-webhook") == [("events.k8s.io", "events", (), ("create",))]
    configurations = [rule for rule in rendered.rules("ClusterRole", "muster-webhook") if rule[0].startswith("admiss")]
    assert {verbs for _, _, _, verbs in configurations} == {(*LOOK, "patch")}
    (held,) = rendered.one("ValidatingAdmissionPolicy", "muster-webhook")["spec"]["validations"]
    assert "caBundle" in held["expression"]
    (volume,) = [item for item in pod(rendered)["volumes"] if item["name"] == "certificates"]
    assert volume["secret"] == {"secretName": secret}
    (container,) = pod(rendered)["containers"]
    (mount,) = [item for item in container["volumeMounts"] if item["name"] == "certificates"]
    assert mount["readOnly"]
    assert f"--certificate-directory={mount['mountPath']}" in container["args"]
    assert f"--secret={secret}" in container["args"]


def test_its_own_are_not_mounted(render: Render) -> None:
    """The webhook reads its Secret itself, or a change would take a minute."""
    rendered = render()
    assert [item["name"] for item in pod(rendered)["volumes"]] == ["tmp"]
    assert not [argument for argument in rendered.arguments("webhook") if "certificate-directory" in argument]


def test_the_controller_mounts_no_certificates(render: Render) -> None:
    (container,) = render(CERT_MANAGER).one("Deployment", "muster-controller")["spec"]["template"]["spec"]["containers"]
    assert [item["name"] for item in container["volumeMounts"]] == ["tmp"]


def test_cert_manager_issues_for_the_service_and_injects_its_authority(render: Render) -> None:
    rendered = render(CERT_MANAGER)
    certificate = rendered.one("Certificate", "muster-webhook")["spec"]
    service = rendered.one("Service")["metadata"]
    assert f"{service['name']}.{service['namespace']}.svc" in certificate["dnsNames"]
    assert certificate["secretName"] == "muster-webhook-cert"
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        annotations = rendered.one(kind)["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": "muster-system/muster-webhook"}
    assert all("caBundle" not in webhook["clientConfig"] for webhook in rendered.webhooks().values())


def test_without_an_issuer_of_ones_own_the_chain_ends_in_one_that_keeps_its_key(render: Render) -> None:
    """Else what it signed before would not be trusted after its renewal."""
    rendered = render(CERT_MANAGER)
    issuer = rendered.one("Issuer", rendered.one("Certificate", "muster-webhook")["spec"]["issuerRef"]["name"])
    authority = next(
        item["spec"]
        for item in rendered.documents
        if item["kind"] == "Certificate" and item["spec"]["secretName"] == issuer["spec"]["ca"]["secretName"]
    )
    assert authority["isCA"]
    assert authority["privateKey"]["rotationPolicy"] == "Never"
    assert rendered.one("Issuer", authority["issuerRef"]["name"])["spec"] == {"selfSigned": {}}


def test_what_cert_manager_leaves_after_an_uninstall_is_named(render: Render) -> None:
    """It deletes no Secret with its Certificate, and one of them has the key of the authority."""
    stays = (Path(__file__).parents[2] / "docs" / "runbook.md").read_text().partition("\nThese stay:\n")[2]
    made = [item["spec"]["secretName"] for item in render(CERT_MANAGER).documents if item["kind"] == "Certificate"]
    assert len(made) == 2
    assert all(f"`{name.replace('muster', '<release>', 1)}`" in stays for name in made)


def test_an_issuer_of_ones_own_is_used_as_it_is(render: Render) -> None:
    rendered = render(CERT_MANAGER, "certManager.issuerRef.name=corp", "certManager.issuerRef.kind=ClusterIssuer")
    assert rendered.one("Certificate")["spec"]["issuerRef"] == {"name": "corp", "kind": "ClusterIssuer"}
    assert not [item for item in rendered.documents if item["kind"] == "Issuer"]


@cases(
    "beyond, settings, refused",
    ("as long as the authority is sure to last", "", (), False),
    ("longer", "1s", (), True),
    ("with an authority elsewhere", "1s", ("certManager.issuerRef.name=corp",), False),
)
def test_no_certificate_is_renewed_after_the_authority_in_the_webhooks_has_ended(
    helm: Program, render: Render, chart: Path, beyond: str, settings: tuple[str, ...], *, refused: bool
) -> None:
    """cert-manager renews it at two thirds of its time, and injects it with the webhook's next certificate."""
    (authority,) = (one["spec"] for one in render(CERT_MANAGER).documents if one.get("spec", {}).get("isCA"))
    most = int(authority["duration"].removesuffix("h")) // 3
    duration = f"{most + 100}h{beyond}"
    values = (CERT_MANAGER, f"certManager.duration={duration}", "certManager.renewBefore=100h", *settings)
    done = helm("template", "muster", str(chart), "--set", ",".join(("image.repository=r", *values)))
    said = (
        f"certManager: duration ({duration}) less renewBefore (100h) must be at most {most}h without issuerRef, or the "
        "CA certificate in the caBundles could end before cert-manager writes the next one, and every call would fail; "
        "set a shorter duration, a longer renewBefore, or an issuerRef"
    )
    assert (bool(done.returncode), said in done.stderr) == (refused, refused), done.stderr


def test_the_authority_of_ones_own_secret_is_written_by_helm(render: Render) -> None:
    for webhook in render(OWN_SECRET, f"webhook.caBundle={PEM}").webhooks().values():
        assert base64.b64decode(webhook["clientConfig"]["caBundle"]).decode() == PEM


@cases(
    "values, said",
    ("two masters", [CERT_MANAGER, OWN_SECRET], "exclude each other"),
    ("a bundle for nothing", [f"webhook.caBundle={PEM}"], "set webhook.existingSecret too"),
    ("base64", [OWN_SECRET, "webhook.caBundle=LS0tLS1CRUdJTg=="], "use certificates in PEM"),
)
def test_what_makes_no_sense_is_refused_in_one_line(helm: Program, chart: Path, values: list[str], said: str) -> None:
    settings = [part for value in ("image.repository=r", *values) for part in ("--set", value)]
    done = helm("template", "muster", str(chart), *settings)
    assert done.returncode
    assert said in done.stderr


def test_further_arguments_reach_the_webhook(render: Render) -> None:
    assert "--certificate-days=30" in render("webhook.extraArgs={--certificate-days=30}").arguments("webhook")
