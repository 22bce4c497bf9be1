"""The Secret of the webhook's certificate, what is served of it, and what the apiserver is told to trust."""

import base64
import ssl

from cryptography import x509

from hack.testbed.api import Api
from muster.model.resource import SECRETS
from muster.process.certificates import Certificates, InvalidCertificateError, authorities_in
from webhook.certificates.bundles import CONFIGURATIONS

SECRET = SECRETS.path("muster-system", "muster-webhook-tls")
_SERVICE_PATH = "/api/v1/namespaces/muster-system/services/muster-webhook"


def authorities(calls: Api) -> list[x509.Certificate]:
    """The authorities in the Secret."""
    return x509.load_pem_x509_certificates(base64.b64decode(calls.done("GET", SECRET)["data"]["ca.crt"]))


def certificate(calls: Api) -> bytes:
    """The serving certificate in the Secret."""
    return base64.b64decode(calls.done("GET", SECRET)["data"]["tls.crt"])


def shown(calls: Api) -> bytes:
    """The certificate that whichever replica takes the connection presents."""
    service = calls.done("GET", _SERVICE_PATH)["spec"]
    return ssl.get_server_certificate((service["clusterIP"], service["ports"][0]["port"])).encode()


def bundles(calls: Api) -> set[str]:
    """The caBundles of all webhooks of both configurations, "" where there is none."""
    return {
        webhook["clientConfig"].get("caBundle", "")
        for resource in CONFIGURATIONS
        for webhook in calls.done("GET", resource.path(name="muster"))["webhooks"]
    }


def everywhere(calls: Api) -> bool:
    """Whether every webhook has exactly the Secret's authorities."""
    return bundles(calls) == {calls.done("GET", SECRET)["data"]["ca.crt"]}


def settled(calls: Api) -> bool:
    """Whether no rotation is under way: the authorities of the last ones, which stay for a while, are gone."""
    return len(authorities(calls)) == 1 and everywhere(calls)


def forget(calls: Api) -> None:
    """Leave the Secret and the caBundles as `helm install` does."""
    calls.done("PATCH", SECRET, {"data": None}, patch="merge")
    for resource in CONFIGURATIONS:
        path = resource.path(name="muster")
        found = calls.done("GET", path)
        for item in found["webhooks"]:
            item["clientConfig"].pop("caBundle", None)
        calls.done("PUT", path, found)


def served_by_all(calls: Api) -> bool:
    """Whether whoever takes the connection presents what is in the Secret."""
    return {shown(calls) for _ in range(8)} == {certificate(calls)}


def whole(calls: Api) -> bool:
    """Whether the Secret can be served."""
    try:
        Certificates.from_secret(calls.done("GET", SECRET).get("data") or {})
    except InvalidCertificateError:
        return False
    return True


def trusted(calls: Api) -> bool:
    """Whether every webhook has all authorities of the Secret, and perhaps others."""
    wanted = set(authorities(calls))
    return all(wanted <= authorities_in(base64.b64decode(one)) for one in bundles(calls))
