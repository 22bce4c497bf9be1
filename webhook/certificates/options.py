"""The command line's options for certificates: where they come from, and the lifetimes of muster's own."""

from __future__ import annotations

import argparse
import datetime as dt
from pathlib import Path

from muster.kube.client import Client
from muster.process.certificates import Lives
from muster.process.lifecycle import Identity
from webhook.certificates.mounted import Mounted
from webhook.certificates.notices import Notices
from webhook.certificates.trust import RotationTiming, Trust

_SHORTEST_DAYS = 1.0
# An authority is renewed when a third of its life is left: what it signs then must not outlive it.
_SHARE = 3


def add_certificate_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags about certificates."""
    parser.add_argument("--secret", default="muster-webhook-tls", help="Secret that holds the certificates")
    parser.add_argument("--service", default="muster-webhook", help="Service by which the apiserver calls")
    parser.add_argument("--configuration", default="muster", help="name of both webhook configurations")
    parser.add_argument(
        "--certificate-directory",
        type=Path,
        help="serve tls.crt and tls.key of this folder, which somebody else renews; then no caBundle is written",
    )
    parser.add_argument(
        "--certificate-days", type=_days, default=90.0, help="life of muster's own serving certificates"
    )
    parser.add_argument("--authority-days", type=_days, default=365.0, help="life of muster's own authority")
    parser.add_argument(
        "--trust-delay",
        type=_seconds,
        default=30.0,
        help="seconds that a new authority is in every caBundle before it signs what is served",
    )
    parser.add_argument(
        "--authority-overlap",
        type=_seconds,
        default=3600.0,
        help="seconds that an authority stays in the caBundles when nothing that it signed is served any more",
    )


def trust_of(arguments: argparse.Namespace, client: Client, own: Identity) -> Trust | Mounted:
    """The source of certificates that the command line asks for. Raises ValueError where options contradict."""
    if arguments.authority_days < _SHARE * arguments.certificate_days:
        raise ValueError(
            f"--authority-days {arguments.authority_days:g} is too short for --certificate-days "
            f"{arguments.certificate_days:g}: an authority lives at least {_SHARE} times as long"
        )
    service = arguments.service
    names = [f"{service}.{own.namespace}.svc", f"{service}.{own.namespace}", service]
    notices = Notices(client, own.namespace, arguments.secret, own.name)
    if arguments.certificate_directory is not None:
        return Mounted(
            client,
            notices,
            directory=arguments.certificate_directory,
            names=names[:1],
            configuration=arguments.configuration,
        )
    lives = Lives(dt.timedelta(days=arguments.certificate_days), dt.timedelta(days=arguments.authority_days))
    return Trust(
        client,
        notices,
        namespace=own.namespace,
        secret=arguments.secret,
        names=names,
        configuration=arguments.configuration,
        terms=RotationTiming(lives, arguments.trust_delay, arguments.authority_overlap),
    )


def _days(text: str) -> float:
    days = float(text)
    if not _SHORTEST_DAYS <= days <= 36500:  # noqa: PLR2004 - a century
        raise argparse.ArgumentTypeError(f"{text} days: use 1 to 36500")
    return days


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} seconds: use 0 or more")
    return seconds
