"""The settings of the installation, as far as commands need them: read from the cluster, not typed.

The chart publishes them in a ConfigMap of kube-public, which every authenticated user may read. A values file of the
chart replaces it, for a plan without a cluster or a cluster without the ConfigMap.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import msgspec

from muster.admitters import listed
from muster.cli.parsing import InputError, Parsed, parse
from muster.gangs.intent import Defaults
from muster.model.findings import Reason, Severity, Validation
from muster.model.modes import GateMode
from muster.model.names import NAMESPACE_NAME
from muster.model.objects import InvalidObjectError, LocalObject, convert
from muster.model.selectors import Requirement, Selector, parse_selector
from muster.queueing.sources import QUEUE_SOURCES, LabelSelector, selector_text
from muster.schedulers import SCHEDULERS, named

_NEVER = ("kube-system",)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the installation; by default those of the chart.

    :ivar defaults: schedulers, queue source, default queue, gate, admitters, namespaces, and how strict admission is
    :ivar by_nodes: true if the nodes limit admission (chart value `bound: nodes`)
    :ivar starts: namespace and name of the ConfigMap with the errors of planned starts; "" when it is not known
    :ivar lease: namespace and name of the controller's Lease; "" when it is not known
    :ivar history: namespace and name of the ConfigMap with the records of the leader; "" when there is none
    :ivar note: why these are assumed, and not known; "" when they are known
    """

    defaults: Defaults = field(default_factory=lambda: Defaults(namespaces=_outside(_NEVER)))
    by_nodes: bool = False
    starts: str = ""
    lease: str = ""
    history: str = ""
    note: str = ""


class _Queues(LocalObject, frozen=True):
    source: Literal["volcano", "muster"] = "volcano"


class _Values(LocalObject, frozen=True):
    """The values of the chart that count here, with the chart's defaults."""

    schedulers: tuple[str, ...] = ("volcano",)
    queues: _Queues = _Queues()
    default_queue: str | int = "default"
    # YAML reads an unquoted `off` as false.
    gate: GateMode | Literal[False] = GateMode.QUEUE
    admitters: tuple[str, ...] = ("ledger",)
    bound: Literal["", "nodes"] = ""
    elastic_quotas: bool = False
    dra: Severity = Severity.WARN
    excluded_namespaces: tuple[str | int, ...] = ()
    namespace_selector: LabelSelector = LabelSelector()


def any_scheduler() -> Settings:
    """The chart's defaults, but for all schedulers that muster works with, under their usual names, Volcano first."""
    assumed = Settings()
    return replace(assumed, defaults=replace(assumed.defaults, schedulers=SCHEDULERS))


def settings_of(path: str) -> Settings:
    """The settings in a values file of the chart. Raises InputError."""
    try:
        text = Path(path).read_text()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or 'not text'}") from error
    return read_settings(path, text)


def read_settings(source: str, text: str) -> Settings:
    """The settings in the text of a values file. Raises InputError, which names the `source`."""
    found = next(parse(source, text), Parsed(source, {})).value
    try:
        values = convert(found, _Values)
        schedulers = named(*values.schedulers)
        if values.elastic_quotas and not any(one.elastic_quotas for one in schedulers.values()):
            raise InvalidObjectError("elasticQuotas", "only coscheduling uses ElasticQuotas; add it to schedulers")
        return Settings(
            Defaults(
                queue=str(values.default_queue),
                schedulers=schedulers,
                queue_source=QUEUE_SOURCES[values.queues.source],
                gate=values.gate or GateMode.OFF,
                admitters=listed(",".join(values.admitters)),
                elastic_quotas=values.elastic_quotas,
                validation=Validation(reasons={Reason.RESOURCE_CLAIMS: values.dra}),
                namespaces=_outside((*_NEVER, *map(str, values.excluded_namespaces)), values.namespace_selector),
            ),
            by_nodes=values.bound == "nodes",
        )
    except (ValueError, msgspec.DecodeError) as error:
        raise InputError(f"{source}: {error}") from error


def _outside(excluded: tuple[str, ...], selector: LabelSelector | None = None) -> Selector:
    """The namespaces that the selector selects, without the excluded ones. Raises InvalidSelectorError."""
    text = selector_text(selector) if selector is not None else ""
    selected = parse_selector(text, bounded=False).requirements if text else ()
    return Selector((Requirement(NAMESPACE_NAME, frozenset(excluded), negated=True), *selected))
