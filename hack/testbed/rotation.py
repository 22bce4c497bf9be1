"""Certificates for operators that rotate their own (open-policy-agent's cert-controller): whole before the first start.

Such an operator waits until the kubelet has mounted the Secret that it fills. Made beforehand, and valid by its own
rules, the certificate spares it a rotation, and a restart.
"""

import base64
from pathlib import Path

from hack.testbed.pki import Authority
from hack.testbed.site import Site


def mounted_certificate(site: Site, folder: Path, *, authority: str, namespace: str, secret: str, service: str) -> str:
    """Create the Secret of a Service's certificate, and the files that a kubelet would mount in `folder`.

    Return the caBundle of the new authority, which has this common name.
    """
    created = Authority.create(authority)
    ca, ca_key = created.pem()
    certificate, key = created.issue([f"{service}.{namespace}.svc"])
    files = {"ca.crt": ca, "ca.key": ca_key, "tls.crt": certificate, "tls.key": key}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(content)
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    site.api.apply(
        f"/api/v1/namespaces/{namespace}/secrets/{secret}",
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "data": data},
    )
    return data["ca.crt"]
