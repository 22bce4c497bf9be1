"""Draws mutants of the given files, and prints them as JSON; runs where mutmut is installed, in `.venv/mutate`."""

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_string

# What a log says is no promise; `cast` does nothing, and a length or a type of None is only an error.
_LEFT_OUT = ("cast", "isinstance", "len", "logger")
_NO_CHANGE = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom)


class _Lot(NamedTuple):
    lot: str
    path: str
    first: int
    last: int
    node: Any
    changed: Any


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of the statement in lines `first` to `last` of a file; `source` is the whole file with the change."""

    path: str
    first: int
    last: int
    source: str


def drawn(sources: Mapping[str, str], seed: int, number: int) -> list[Mutant]:
    """So many mutants, at most one of a statement; a change elsewhere does not change the draw."""
    modules = {path: MetadataWrapper(cst.parse_module(source)) for path, source in sources.items()}
    lots = sorted(lot for path, source in sources.items() for lot in _lots(path, source, modules[path], seed))
    found: list[Mutant] = []
    for _, path, first, last, node, changed in lots:
        before, after = (modules[path].module.code_for_node(one) for one in (node, changed))
        # None instead of False is no change to those who ask whether it is so.
        if before not in (after, after.replace("None", "False")):
            text = modules[path].module.deep_replace(node, changed).code
            found.append(Mutant(path, first, last, text))
            if len(found) == number:
                break
    return found


def _lots(path: str, source: str, module: MetadataWrapper, seed: int) -> Iterator[_Lot]:
    """One change of every statement, with the lot of the statement."""
    text, places = source.splitlines(), module.resolve(PositionProvider)
    statements: dict[tuple[int, int], list[tuple[Any, Any]]] = {}
    for statement, node in _nodes(module.module, None):
        for changed in _changes(node):
            statements.setdefault(_lines(statement, node, places), []).append((node, changed))
    seen: Counter[str] = Counter()
    for (first, last), changes in statements.items():
        words = "\n".join(text[first - 1 : last])
        seen[words] += 1
        lot = hashlib.sha256(f"{seed} {path} {words} {seen[words]}".encode()).hexdigest()
        yield _Lot(lot, path, first, last, *changes[int(lot[:16], 16) % len(changes)])


def _lines(statement: Any, node: Any, places: Mapping[Any, Any]) -> tuple[int, int]:  # noqa: ANN401 - nodes of libcst
    """The lines that run when the change does; of a statement with a body they stand before the body."""
    if isinstance(statement, cst.SimpleStatementLine):
        place = places[statement]
    elif node is statement:
        place = places[getattr(node, "test", getattr(node, "subject", node))]
    else:
        place = places[node]
    return place.start.line, place.end.line


def _nodes(node: Any, statement: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - a node of libcst
    """Every node inside of a function that may be changed, with its statement."""
    if isinstance(node, _NO_CHANGE) or (isinstance(node, cst.Call) and _name(node.func) in _LEFT_OUT):
        return
    inside = statement is not None or isinstance(node, cst.FunctionDef)
    if inside and isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
        statement = node
    if inside:
        yield statement, node
    for child in node.children:
        yield from _nodes(child, statement)


def _name(node: Any) -> str:  # noqa: ANN401 - a node of libcst
    while isinstance(node, cst.Attribute):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def _changes(node: Any) -> Iterable[Any]:  # noqa: ANN401 - a node of libcst
    for type_, operator in mutation_operators:
        if isinstance(node, type_):
            # Of three changes of a text the first will do.
            yield from list(operator(node))[: 1 if operator is operator_string else None]
    if isinstance(node, cst.Expr) and not isinstance(node.value, cst.BaseString):
        yield cst.Pass()
    if isinstance(node, (cst.If, cst.While, cst.CompIf)):
        yield node.with_changes(test=_negated(node.test))


def _negated(test: Any) -> Any:  # noqa: ANN401 - a node of libcst
    return cst.UnaryOperation(cst.Not(), test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]))


def main() -> None:
    """Print the mutants, one a line."""
    parser = argparse.ArgumentParser(prog="hack.mutate.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("paths", nargs="+")
    given = parser.parse_args()
    sources = {path: Path(path).read_text() for path in given.paths}
    for one in drawn(sources, given.seed, given.number):
        json.dump(asdict(one), sys.stdout)
        print()


if __name__ == "__main__":
    main()
