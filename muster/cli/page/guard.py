"""The requests that the page refuses, and what a browser may do with its answers.

`muster page` listens on loopback alone, and yet others can send requests there: every account of the machine, and every
web site that the user opens, in the user's own browser. A secret in the address keeps out the former; the latter do not
get past the Host header (DNS rebinding), Origin and Sec-Fetch-Site.

`muster-page` is behind the apiserver's service proxy, which asks its authorizer first. Nothing in a proxied request
shows that it comes from there: the Host is any name of the apiserver, and the proxy adds nothing that a pod
could not send. So a secret in the address keeps out the pods that reach the Service; and NetworkPolicies, where they
are enforced.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import web

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""The headers of every answer: nothing from elsewhere, no inline script or style, no frame, no copy kept."""

# Any port: people forward the page's port to another one of their own machine.
_HOSTS = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Door:
    """The way to the page.

    :ivar secret: the first part of every address; "" where the addresses have none
    :ivar proxied: true if the page is behind the apiserver's service proxy; if not, it answers on loopback
    :ivar hint: where the right address is found, for a request with another one
    """

    secret: str = ""
    proxied: bool = False
    hint: str = "open the address that `muster page` printed"


def refusal(headers: Mapping[str, str], door: Door, given: str) -> web.HTTPException | None:
    """The refusal of a request, None when it is let in; `given` is the first part of its address."""
    host = headers.get("Host", "")
    if not door.proxied and _name(host) not in _HOSTS:
        return web.HTTPMisdirectedRequest(text=f"this page answers to the host names {', '.join(_HOSTS)} only\n")
    origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site", "none")
    # No browser names an origin when a page loads its own files, and the name by which the apiserver was asked is not
    # known here.
    own = site == "same-origin" if door.proxied else origin == f"http://{host}"
    foreign = site not in ("same-origin", "none") and headers.get("Sec-Fetch-Mode") != "navigate"
    if (origin is not None and not own) or foreign:
        return web.HTTPForbidden(text="another site may not read this page\n")
    if door.secret and not hmac.compare_digest(given.encode(), door.secret.encode()):
        return web.HTTPNotFound(text=f"{door.hint}\n")
    return None


def _name(host: str) -> str:
    """The host without its port."""
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isascii() and port.isdigit() else host.lower()
