"""Who may ask the page, and what a browser may do with its answers.

The page listens on loopback alone, and yet others can send requests there: every account of the machine, and every web
site that the user opens, in the user's own browser. A secret in the address keeps out the former; the latter do not get
past the Host header (DNS rebinding), Origin and Sec-Fetch-Site.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HEADERS", "refusal"]

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
"""What every answer says: nothing from elsewhere, no inline script or style, no frame, no copy kept."""

# Any port: people forward the page's port to another one of their own machine.
_HOSTS = ("127.0.0.1", "localhost", "[::1]")


def refusal(headers: Mapping[str, str], secret: str, given: str) -> web.HTTPException | None:
    """Why a request is refused, None when it is not; `given` is the secret in its address."""
    host = headers.get("Host", "")
    if _name(host) not in _HOSTS:
        return web.HTTPMisdirectedRequest(text=f"this page answers to the host names {', '.join(_HOSTS)} only\n")
    origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site", "none")
    foreign = site not in ("same-origin", "none") and headers.get("Sec-Fetch-Mode") != "navigate"
    if (origin is not None and origin != f"http://{host}") or foreign:
        return web.HTTPForbidden(text="another site may not read this page\n")
    if not hmac.compare_digest(given.encode(), secret.encode()):
        return web.HTTPNotFound(text="open the address that `muster page` printed\n")
    return None


def _name(host: str) -> str:
    """The host without its port."""
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isascii() and port.isdigit() else host.lower()
