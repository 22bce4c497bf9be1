"""The commands and their options; nothing that a command needs to run is imported here, for start-up to stay short."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

import muster
from muster.cli.examples import Formatter, epilog
from muster.cli.options import caution, cluster, connection, flag, output, queue_name, scope, seconds, settings

_HIGHEST_PORT = 65535


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = argparse.ArgumentParser(
        prog="muster",
        description="Gang scheduling of Ray and Kubeflow workloads.",
        epilog="`muster COMMAND --help` describes a command, with examples.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and the commit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _plan(commands)
    _explain(commands)
    _queues(commands)
    _gangs(commands)
    _report(commands)
    _page(commands)
    _hold(commands)
    _audit(commands)
    _doctor(commands)
    completion = commands.add_parser(
        "completion",
        help="print the completion script of a shell",
        description="Print the completion script of a shell. For bash: source <(muster completion bash)",
    )
    completion.add_argument("shell", choices=["bash", "zsh", "fish"], help="shell whose script is printed")
    commands.add_parser("version", help="print the version and the commit")
    _migrate_queues(commands)
    _replay(commands)
    _record(commands)
    _test(commands)
    _release(commands)
    _withdraw(commands)
    for name, command in commands.choices.items():
        command.epilog, command.formatter_class = epilog(name), Formatter
    return parser


class _Version(argparse.Action):
    """`--version`."""

    def __call__(self, *_: object) -> None:
        """Print the version and exit."""
        print_version()


def print_version() -> NoReturn:
    """Print the version and the commit, and exit."""
    from muster.cli.ui import print_line  # noqa: PLC0415
    from muster.process.revision import revision  # noqa: PLC0415

    print_line(f"{muster.__version__} (commit {revision()})")
    sys.exit(0)


def _plan(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "plan",
        help="show what muster would do with manifests; needs no cluster",
        description="Show the gang, the PodGroup and the pod patches of each workload in the manifests. "
        "Queues, PriorityClasses, Namespaces, LimitRanges, ResourceQuotas, ElasticQuotas, RuntimeClasses and training "
        "runtimes in the input are taken into account. Without a Queue in the input, queue limits are not checked.",
    )
    parser.add_argument("file", nargs="*", metavar="FILE", help="the same as -f FILE")
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE",
        help="manifest file, directory of manifests, or - for standard input; can be repeated",
    )
    output(parser, "table", "wide", "yaml", "json", "junit")
    parser.add_argument(
        "-n", "--namespace", default="", help='namespace of the objects that name none; default: "default"'
    )
    flag(parser, "--patches", "also show the patches of the pods in the table")
    settings(
        parser,
        "with --cluster the settings that the cluster publishes, else those of the chart with all schedulers that "
        "muster works with, volcano first",
    )
    flag(parser, "--strict", "exit with 3 when a workload is not managed, or something looks misspelled")
    flag(parser, "--cluster", "also read the Queues, PriorityClasses, Namespaces and other objects of the cluster")
    what_if = parser.add_argument_group("what if", "which gangs of the cluster would start at another time")
    flag(
        what_if,
        "--what-if",
        "with --cluster: show whose expected start changes if the manifests come, or if one of these holds",
    )
    what_if.add_argument("--queue", default="", metavar="NAME", help="the queue has the capability of --capability")
    what_if.add_argument("--capability", default="", metavar="AMOUNTS", help="such as cpu=64,nvidia.com/gpu=16")
    what_if.add_argument("--lose-node", default="", metavar="NODE", help="the node is gone")
    what_if.add_argument("--reserves", choices=["estimates", "bounds"], default="", help="what all queues trust")
    connection(parser)


def _replay(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "replay",
        help="show how long the gangs of a log would have waited under other policies; needs no cluster",
        description="Run a log of past gangs on muster's own admission, once for each policy, and compare how long "
        "they wait. The log is one of the Standard Workload Format (.swf, .swf.gz), a record of `muster record`, or a "
        "generated day (generated:SEED).",
    )
    parser.add_argument("log", metavar="LOG", help="path of the log, or generated:SEED")
    parser.add_argument(
        "--policy",
        action="append",
        metavar="SETTINGS",
        help="settings of all queues in place of their own, such as "
        "patience=10m,reserves=estimates,drain-after=72h,half-life=24h,bounds=0.3, where bounds is the part of the "
        "time limits that counts; can be repeated; default: a comparison of five policies",
    )
    flag(parser, "--expected", "also forecast starts when gangs come, and show how right that was")
    parser.add_argument("--plot", metavar="FILE", help="also draw the waits of each policy into this SVG file")
    output(parser)


def _record(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "record",
        help="write down which gangs come, start and end, until Ctrl-C: for `muster replay` and `muster test`",
        description="Follow the cluster and write its queues, and each gang that comes, starts or ends, into a file. "
        "Names are hashed with a salt that is not kept. It reads with your permissions and changes nothing.",
    )
    parser.add_argument(
        "--out", required=True, metavar="FILE", help="file to write, such as day.jsonl.gz; it must not exist"
    )
    cluster(parser, everywhere="read all namespaces; the default")


def _test(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "test",
        help="check that queues keep waits short under a load; needs no cluster",
        description="Run a load on the queues of a file by muster's own admission, and check what the file expects of "
        "waits and usage. The exit code is 1 when an expectation fails, 2 when the file or its load cannot be read.",
    )
    parser.add_argument("policy", metavar="FILE", help="YAML file with given, load and expect")
    parser.add_argument("--junit", metavar="FILE", help="also write the results into this file, for a CI system")
    output(parser)


def _release(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "release",
        help="emergency: open muster's gates regardless of the queues",
        description="Remove muster's scheduling gate from the pods of gangs, and create the PodGroups that these pods "
        "lack, so that the scheduler can place them. It needs only the apiserver and permission to list and patch pods "
        "and to list and create PodGroups; muster and Volcano may be down.",
    )
    parser.add_argument(
        "gang", nargs="*", metavar="GANG", help="name of the gang: the label muster.dev/gang of its pods"
    )
    flag(parser, "--all", "every gang; without -n in all namespaces")
    scope(
        parser,
        "namespace of the gangs; default: the namespace of the kubeconfig context",
        "find the gangs in all namespaces",
        wide=True,
    )
    settings(parser)
    caution(parser)
    connection(parser, in_need=True)


def _withdraw(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "withdraw",
        help="remove muster from the cluster: its webhooks, then every gate; `helm uninstall` runs this",
        description="Delete muster's webhook configurations and the permissions of its controller, then open every "
        "gate. `helm upgrade` restores the first two. It needs only the apiserver.",
    )
    parser.add_argument(
        "--name",
        default="muster",
        help="prefix of all object names of the release, as the chart computes it; default: muster",
    )
    parser.add_argument(
        "--settle",
        type=seconds,
        default=6.0,
        metavar="SECONDS",
        help="how long to wait for reviews in flight; must exceed the chart value `webhook.timeoutSeconds`; default: 6",
    )
    settings(parser)
    caution(parser)
    connection(parser, in_need=True)


def _migrate_queues(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "migrate-queues",
        help="copy Volcano's Queues into GangQueues, or back",
        description="Make a queue of the other source for each queue of the one. A queue that exists already stays as "
        "it is. The chart value `queues.source` chooses which of them count.",
    )
    parser.add_argument("--to", choices=["muster", "volcano"], required=True, help="the source that gets the queues")
    caution(parser)
    connection(parser)


def _explain(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="show why a workload waits, runs, or is not managed by muster",
        description="Show the state of a workload's gang and the reason, in the words of the controller, what the gang "
        "needs, the limits of its queue, its pods and its events. It only reads, with your permissions, and names the "
        "permissions that are missing.",
    )
    parser.add_argument(
        "workload",
        nargs="+",
        metavar="KIND/NAME",
        help="workload, pod or PodGroup, for example raycluster/demo, or raycluster demo; can be repeated; a name "
        "alone is looked for among all kinds of workloads",
    )
    output(parser)
    flag(
        parser,
        "--ledger",
        "also read all other gangs: the usage of the queues, who holds them, the position in the queue, and when "
        "the gang is expected to start",
    )
    flag(
        parser,
        "--what-would-help",
        "also ask what would let a waiting gang start now: fewer pods, another queue, a time limit, the end of "
        "other gangs; implies --ledger, and needs the right to read all namespaces",
    )
    cluster(parser, "namespace of the workloads", "find the workloads in all namespaces")


def _queues(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    queues = commands.add_parser(
        "queues",
        help="show the queues: limits, usage, and how many gangs wait",
        description="Show the queue tree with the limit and the usage of each queue, and the number of gangs that hold "
        "a claim or wait.",
    )
    output(queues)
    queues.add_argument("-w", "--watch", action="store_true", help="as `muster watch`: follow the cluster until Ctrl-C")
    watch = commands.add_parser(
        "watch",
        help="show queues and gangs, updated on every change, until Ctrl-C",
        description="Show the queues and all gangs that hold a claim or wait, and redraw when anything changes.",
    )
    watch.set_defaults(watch=True)
    for parser in (queues, watch):
        cluster(parser)


def _gangs(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "gangs",
        help="list the gangs that wait, run or cannot start, and since when",
        description="List the gangs: those that wait, in the order in which they start, those that cannot start, and "
        "those that hold a claim. AGE counts from when a gang began to wait, or was admitted.",
    )
    output(parser, "table", "wide", "yaml", "json")
    flag(parser, "--waiting", "only gangs that hold nothing")
    parser.add_argument(
        "-q", "--queue", type=queue_name, metavar="QUEUE", help="only gangs of this queue and those below"
    )
    scope(parser, "list only the gangs of this namespace", "list the gangs of all namespaces; the default", wide=True)
    settings(parser)
    connection(parser)


def _report(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "report",
        help="show what was used, by whom, and how long gangs waited",
        description="Sum the records that muster's leader keeps: the hours of cpu, memory and devices that gangs held, "
        "for which they waited, and that they held while none of their pods ran; how long gangs waited, and how they "
        "ended. It needs the right to get the ConfigMap of the records, which only administrators have.",
    )
    parser.add_argument(
        "--since", default="7d", metavar="TIME", help="duration or date; its whole first day (UTC) counts; default: 7d"
    )
    parser.add_argument(
        "--by", type=_by, default="queue", metavar="WHAT", help="queue, namespace, owner or label=KEY; default: queue"
    )
    parser.add_argument("-q", "--queue", type=queue_name, metavar="QUEUE", help="only gangs of this queue")
    output(parser, "table", "csv", "json")
    parser.add_argument("--svg", metavar="FILE", help="also draw the use of each day into this SVG file")
    parser.set_defaults(values=None)
    connection(parser)


def _by(text: str) -> str:
    if text not in ("queue", "namespace", "owner") and not text.partition("label=")[2]:
        raise argparse.ArgumentTypeError(f'"{text}" is not queue, namespace, owner or label=KEY')
    return text


def _hold(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    hold = commands.add_parser(
        "hold",
        help="let no gang of a workload or queue start; running gangs continue",
        description="Put workloads or queues on hold, by the annotation `muster.dev/hold`. A workload on hold leaves "
        "the line of its queue and blocks no other gang; no gang starts in a queue on hold or in a queue below it. "
        "Running gangs continue, and get lost pods back.",
    )
    resume = commands.add_parser(
        "resume",
        help="take workloads or queues off hold",
        description="Remove the annotation `muster.dev/hold` from workloads or queues, and from what these workloads "
        "have made. A workload gets the place in line again that its priority and age give it.",
    )
    for parser in (hold, resume):
        parser.add_argument(
            "object",
            nargs="+",
            metavar="KIND/NAME",
            help="queue, workload, or pod of one, for example queue/research or rayjob/demo; can be repeated",
        )
        output(parser)
        parser.add_argument(
            "-n", "--namespace", help="namespace of the workloads; default: the namespace of the kubeconfig context"
        )
        flag(parser, "--dry-run", "check everything and change nothing")
        connection(parser)


def _audit(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "audit",
        help="list existing objects that admission would reject or warn about",
        description="Check every existing workload, Queue and PodGroup against the rules of the webhook, as if it were "
        "applied now. Run it before you upgrade the chart or change the chart value `validation` from warn to deny. "
        "It changes nothing, and running workloads keep running.",
    )
    output(parser)
    scope(parser, "check only this namespace, and no Queues", "check all namespaces; the default", wide=True)
    parser.add_argument(
        "--validation",
        choices=["deny", "warn", "off"],
        default="deny",
        help="the future chart value `validation`; default: deny",
    )
    parser.add_argument(
        "--validation-reason",
        action="append",
        default=[],
        metavar="REASON=SEVERITY",
        help="one entry of the future chart value `validationReasons`; can be repeated",
    )
    settings(parser)
    connection(parser, in_need=True)


def _doctor(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check muster and its dependencies, and suggest fixes",
        description="Check a cluster: muster's pods, webhooks, certificates and lease, Volcano, gangs "
        "that are held for a long time, and operators that create gangs themselves. Each finding comes with a fix. A "
        "pod is created as a dry run; nothing is changed without --probe. The exit code is 1 when there is a problem, "
        "and 2 when there is none but some checks could not run.",
    )
    output(parser)
    scope(
        parser,
        "namespace of the dry run and the probe; default: the namespace of the kubeconfig context",
        "read all namespaces; always done",
    )
    parser.add_argument(
        "--held-for",
        default="1h",
        metavar="DURATION",
        help="report gangs that are held for longer than this; default: 1h",
    )
    parser.add_argument(
        "--probe",
        nargs="?",
        const="all",
        choices=["all", "only"],
        help="also test whether kube-scheduler holds gangs together, with a PodGroup and three small pods that are "
        "deleted afterwards; only: make no other check",
    )
    parser.add_argument("--image", default="", help="image of the pods of --probe; default: muster's own")
    settings(parser)
    connection(parser, in_need=True)


def _page(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "page",
        help="serve a web page of the queues and gangs on this machine, until Ctrl-C",
        description="Serve a web page on the loopback address: the queues with their limits and usage, the gangs that "
        "wait, in order and with the reason, and those that run. It reads with your permissions and changes nothing. "
        "The printed address contains a secret; a user who knows it and reaches your loopback address sees the page.",
    )
    parser.add_argument("--port", type=_port, default=0, metavar="N", help="port to listen on; default: any free port")
    cluster(parser)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _HIGHEST_PORT):
        raise argparse.ArgumentTypeError(f'"{text}" is no port between 0 and {_HIGHEST_PORT}')
    return int(text)
