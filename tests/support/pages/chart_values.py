"""The values of the chart, with their comments, as values.yaml has them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_AS_THE_WEBHOOKS = "As the webhook's."
_KEY = re.compile(r"( *)([A-Za-z_]+):(?: (.*))?$")


@dataclass
class Value:
    """A key of values.yaml: its dotted path, its default as it is written there, and its comment in one line."""

    path: str
    default: list[str]
    comment: str
    below: list[str] = field(default_factory=list)


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
