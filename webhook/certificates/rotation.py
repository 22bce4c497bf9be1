"""The next content of the Secret, such that no caller ever meets a certificate that it does not trust.

Pure: any replica takes any step, and the next one continues from what is in the Secret. A new authority is added beside
the old one and signs nothing until every webhook configuration has had it for a while; then the serving certificate
changes; and the old authority is removed when it has not been needed for long.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from cryptography.x509 import Certificate

from muster.process.certificates import Certificates, KeyPair, Lives, issue, renewal_due, valid_at

# The annotation of the Secret by which people ask for a rotation; taken off when it is answered.
ROTATE = "muster.dev/rotate"
# The one that signs, the one that signed what is served, and two before them: rotations in a hurry.
_MOST_AUTHORITIES = 4


class RotationStep(StrEnum):
    """What an administrator can ask for: a new serving certificate, or a new authority and a certificate of it."""

    SERVING = "serving"
    AUTHORITY = "authority"


@dataclass(frozen=True, slots=True)
class Situation:
    """What one replica knows: the Secret (None: nothing usable), what it serves itself, and what callers trust.

    `trusted` are the authorities that all configurations have had for long enough, `idle` those that have not been
    needed for long, `now` the apiserver's time.
    """

    found: Certificates | None
    serving: KeyPair | None
    serving_issuer: Certificate | None
    trusted: frozenset[Certificate]
    idle: frozenset[Certificate]
    asked: RotationStep | None
    now: dt.datetime


@dataclass(frozen=True, slots=True)
class Step:
    """The next content of the Secret, the reason, and whether it fulfils an administrator's request."""

    certificates: Certificates
    why: str
    answers: bool = False


def next_step(situation: Situation, names: Sequence[str], lives: Lives) -> Step | None:
    """The next step for a Service with these DNS names; None while there is nothing to do."""
    found, now = situation.found, situation.now
    if found is None:
        return Step(_anew(situation, names, lives), "made a new authority and a new serving certificate", answers=True)
    first = found.authorities[0]
    if renewal_due(first, now):
        return Step(_with_authority(found, now, lives), f"the authority ends {_day(first)}: added a new one")
    if situation.asked is RotationStep.AUTHORITY and found.issuer == first:
        return Step(_with_authority(found, now, lives), "added a new authority, as was asked for", answers=True)
    if why := _wants_pair(found, names, situation):
        if first not in situation.trusted and _good(found.pair, names, now):
            return None
        answers = situation.asked is RotationStep.SERVING
        return Step(found.with_new_pair(names, now, lives), why, answers=answers)
    kept = tuple(one for one in found.authorities if one in {first, found.issuer} or one not in situation.idle)
    if kept != found.authorities:
        return Step(replace(found, authorities=kept), "took out authorities that nobody needs any more")
    return None


def _wants_pair(found: Certificates, names: Sequence[str], situation: Situation) -> str:
    """Why the served certificate is to be replaced, "" when it is not."""
    first, leaf = found.authorities[0], found.pair.leaf
    if found.issuer != first:
        return "made a new serving certificate, of the new authority"
    if not found.pair.serves(names):
        return f"made a new serving certificate, for {names[0]}"
    # One that lasts as long as its authority can only be renewed with it.
    if renewal_due(leaf, situation.now) and leaf.not_valid_after_utc < first.not_valid_after_utc:
        return f"the serving certificate ends {_day(leaf)}: made a new one"
    return "made a new serving certificate, as was asked for" if situation.asked is RotationStep.SERVING else ""


def _good(pair: KeyPair, names: Sequence[str], now: dt.datetime) -> bool:
    return valid_at(pair.leaf, now) and pair.serves(names)


def _anew(situation: Situation, names: Sequence[str], lives: Lives) -> Certificates:
    """A new Secret that keeps what this replica serves, and its authority, until the new one is trusted."""
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
