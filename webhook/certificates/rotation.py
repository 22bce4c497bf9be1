"""The next content of the Secret, such that no caller ever meets a certificate that it does not trust.

The rules are pure: any replica may take any step, and the next one continues from the Secret. A new authority is added
to the old one and signs nothing until every webhook configuration has had it for a while; then the serving certificate
changes; the old authority is removed when it has not been needed for long.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from cryptography.x509 import Certificate

from muster.process.certificates import Certificates, KeyPair, Lives, issue, renewal_due, valid_at

# The annotation of the Secret that requests a rotation; removed when that is done.
ROTATE = "muster.dev/rotate"
# The one that signs, the issuer of the served certificate, and two before them: for rotations in quick succession.
_MOST_AUTHORITIES = 4


class RotationStep(StrEnum):
    """A rotation that an administrator can request: of the serving certificate, or of the authority and then of it."""

    SERVING = "serving"
    AUTHORITY = "authority"


@dataclass(frozen=True, slots=True)
class Situation:
    """The certificates as one replica sees them.

    :ivar found: the content of the Secret; None if it is unusable
    :ivar serving: certificate and key that this replica serves
    :ivar serving_issuer: the authority that signed it
    :ivar trusted: authorities that all configurations have had for long enough
    :ivar idle: authorities that have not been needed for long
    :ivar requested: the rotation that an administrator requests
    :ivar now: the apiserver's time
    """

    found: Certificates | None
    serving: KeyPair | None
    serving_issuer: Certificate | None
    trusted: frozenset[Certificate]
    idle: frozenset[Certificate]
    requested: RotationStep | None
    now: dt.datetime


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a rotation.

    :ivar certificates: the next content of the Secret
    :ivar reason: why, for the event
    :ivar fulfils_request: the step is the one that an administrator has requested
    """

    certificates: Certificates
    reason: str
    fulfils_request: bool = False


def next_step(situation: Situation, names: Sequence[str], lives: Lives) -> Step | None:
    """The next step for a Service with these DNS names; None if there is nothing to do."""
    found, now = situation.found, situation.now
    if found is None:
        made = _reissue(situation, names, lives)
        return Step(made, "made a new authority and a new serving certificate", fulfils_request=True)
    first = found.authorities[0]
    if renewal_due(first, now):
        return Step(_with_authority(found, now, lives), f"the authority ends {_day(first)}: added a new one")
    if situation.requested is RotationStep.AUTHORITY and found.issuer == first:
        return Step(_with_authority(found, now, lives), "added a new authority, as was asked for", fulfils_request=True)
    if reason := _renewal_reason(found, names, situation):
        if first not in situation.trusted and _good(found.pair, names, now):
            return None
        requested = situation.requested is RotationStep.SERVING
        return Step(found.with_new_pair(names, now, lives), reason, fulfils_request=requested)
    needed = tuple(one for one in found.authorities if one in {first, found.issuer} or one not in situation.idle)
    if needed != found.authorities:
        return Step(replace(found, authorities=needed), "took out authorities that are no longer needed")
    return None


def _renewal_reason(found: Certificates, names: Sequence[str], situation: Situation) -> str:
    """Why the Secret's serving certificate must be replaced; "" if it need not be."""
    first, leaf = found.authorities[0], found.pair.leaf
    if found.issuer != first:
        return "made a new serving certificate, of the new authority"
    if not found.pair.serves(names):
        return f"made a new serving certificate, for {names[0]}"
    # One that lasts as long as its authority can only be renewed with it.
    if renewal_due(leaf, situation.now) and leaf.not_valid_after_utc < first.not_valid_after_utc:
        return f"the serving certificate ends {_day(leaf)}: made a new one"
    return "made a new serving certificate, as was asked for" if situation.requested is RotationStep.SERVING else ""


def _good(pair: KeyPair, names: Sequence[str], now: dt.datetime) -> bool:
    return valid_at(pair.leaf, now) and pair.serves(names)


def _reissue(situation: Situation, names: Sequence[str], lives: Lives) -> Certificates:
    """A new Secret; it keeps the certificate that this replica serves until the new authority is trusted."""
    made = issue(names, situation.now, lives)
    serving, issuer = situation.serving, situation.serving_issuer
    if serving is None or issuer is None or not _good(serving, names, situation.now):
        return made
    return replace(made, authorities=(*made.authorities, issuer), pair=serving)


def _with_authority(found: Certificates, now: dt.datetime, lives: Lives) -> Certificates:
    made = found.with_new_authority(now, lives)
    new, *others = made.authorities
    spare = [one for one in others if one != found.issuer][: _MOST_AUTHORITIES - 2]
    return replace(made, authorities=(new, *(one for one in others if one == found.issuer or one in spare)))


def _day(certificate: Certificate) -> str:
    return certificate.not_valid_after_utc.strftime("%Y-%m-%d %H:%M UTC")
