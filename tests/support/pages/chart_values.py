"""charts/muster/README.md, whose table of values is made from the comments of values.yaml."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

BEGIN = "<!-- Values: written by MUSTER_REWRITE=1 pytest tests/chart/test_readme.py from values.yaml. -->\n"
END = "<!-- End of values. -->\n"
_AS_THE_WEBHOOKS = "As the webhook's."
_KEY = re.compile(r"( *)([A-Za-z_]+):(?: (.*))?$")


@dataclass
class Value:
    """A key of values.yaml: its dotted path, its default as it is written there, and its comment in one line."""

    path: str
    default: list[str]
    comment: str
    below: list[str] = field(default_factory=list)

    def row(self) -> str:
        """Return its row of the table; a key with others below it has no default of its own."""
        default = "" if self.below else f"`{' '.join(self.default)}`"
        return f"| `{self.path}` | {default} | {self.comment.replace('|', '&#124;')} |"


def values(text: str) -> Iterator[Value]:
    """Every key, in the order of the file. Raises ValueError at a line that it does not know."""
    above: list[Value] = []
    comment: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#"):
            comment.append(stripped.removeprefix("#").strip())
        elif not stripped:
            comment = []
        elif stripped.startswith("- ") and above:
            above[-1].default.append(stripped)
        elif found := _KEY.match(line):
            above = above[: len(found[1]) // 2]
            value = Value(".".join([*(one.path.rpartition(".")[2] for one in above), found[2]]), [], " ".join(comment))
            value.default.extend([found[3]] if found[3] else [])
            if above:
                above[-1].below.append(value.path)
            above.append(value)
            comment = []
            yield value
        else:
            raise ValueError(line)


def described(text: str) -> Iterator[Value]:
    """Every key; one without a comment below `controller` or `page` is as the webhook's of the same name."""
    known = {value.path: value for value in values(text)}
    for path, value in known.items():
        twin = known.get(re.sub("^(controller|page)", "webhook", path))
        if not value.comment and twin and twin.comment and twin.default == value.default:
            value.comment = _AS_THE_WEBHOOKS
        yield value


def table(text: str) -> str:
    """Return the table of all values; those as the webhook's are in one row for each process."""
    listed = list(described(text))
    rows = [value.row() for value in listed if value.comment not in ("", _AS_THE_WEBHOOKS)]
    for process in ("controller", "page"):
        same = [f"`{one.path}`" for one in listed if one.comment == _AS_THE_WEBHOOKS and _is_below(one, process)]
        rows.append(f"| {', '.join(same)} | as the webhook's | As the webhook's of the same name. |")
    return "\n".join([BEGIN, "| value | default | what |", "|---|---|---|", *rows, "", END])


def _is_below(value: Value, process: str) -> bool:
    return value.path.startswith(f"{process}.") and not value.below
