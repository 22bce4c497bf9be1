"""Mutation tests of the rules, by the unit tests: `make mutate`.

A mutant is one small change of one statement: by mutmut's operators, a statement that is left out, or a condition that
is turned round. Statements are drawn by a seed from the modules that do no I/O; a change elsewhere does not change the
draw. A mutant runs in a fork of this process, against the unit tests that reach its statement, the fastest first, until
one fails. mutmut's own runner is not used: it passes over decorated functions, and has no draw.
"""

import argparse
import difflib
import hashlib
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.machinery import SourceFileLoader
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp.web  # noqa: F401 - every fork needs it
import coverage
import cryptography.x509  # noqa: F401 - as above
import hypothesis
import kubernetes_asyncio  # noqa: F401 - as above
import pytest

sys.path += map(str, Path(".venv/mutate").glob("lib/python3*/site-packages"))
import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_string

_FORK = multiprocessing.get_context("fork")
# Commands and the client; and what does I/O, which is tested where the real thing runs.
_LEFT_OUT, _IO = (
    ("muster/cli/", "muster/kube/"),
    r"(?m)^(?:import|from) (?:asyncio|aiohttp|os|signal|socket|ssl|time)\b",
)
# What a log says is no promise; `cast` does nothing, and a length or a type of None is only an error.
_UNTESTED_CALLS = r"(cast|isinstance|len|logger)\b"
_PYTEST = ("-q", "-x", "--assert=plain", "-p", "no:cacheprovider", "--hypothesis-seed=0")
_TEST_SECONDS, _BYTES = 30, 4 * 1024**3


class _Mutant(NamedTuple):
    path: str
    first: int
    last: int
    source: str


def _drawn(sources: Mapping[str, str], seed: int) -> Iterator[_Mutant]:
    lots = []
    for path, source in sources.items():
        module, text, seen = MetadataWrapper(cst.parse_module(source)), source.splitlines(), Counter[str]()
        places, statements = module.resolve(PositionProvider), dict[tuple[int, int], list[Any]]()
        for statement, node in _nodes(module.module, None):
            # The lines that run when the change does; of a statement with a body they stand before the body.
            ran = statement if isinstance(statement, cst.SimpleStatementLine) else node
            place = places[getattr(ran, "test", getattr(ran, "subject", ran)) if ran is statement else ran]
            statements.setdefault((place.start.line, place.end.line), []).extend((node, one) for one in _changes(node))
        for (first, last), changes in statements.items():
            if not changes:
                continue
            words = "\n".join(text[first - 1 : last])
            seen[words] += 1
            lot = hashlib.sha256(f"{seed} {path} {words} {seen[words]}".encode()).hexdigest()
            lots.append((lot, path, first, last, module.module, changes[int(lot[:16], 16) % len(changes)]))
    for _, path, first, last, module, (node, changed) in sorted(lots, key=lambda one: one[0]):
        before, after = (module.code_for_node(one) for one in (node, changed))
        # None instead of False is no change to an `if`.
        if before not in (after, after.replace("None", "False")):
            yield _Mutant(path, first, last, module.deep_replace(node, changed).code)


def _nodes(node: Any, statement: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - a node of libcst
    """Every node of a function that may be changed, with its statement."""
    if isinstance(node, (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom)):
        return
    if isinstance(node, cst.Call) and re.match(_UNTESTED_CALLS, cst.Module([]).code_for_node(node.func)):
        return
    if statement is not None or isinstance(node, cst.FunctionDef):
        statement = node if isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)) else statement
        yield statement, node
    for child in node.children:
        yield from _nodes(child, statement)


def _changes(node: Any) -> Iterator[Any]:  # noqa: ANN401 - a node of libcst
    for kind, operator in mutation_operators:
        if isinstance(node, kind):
            # Of three changes of a text the first will do.
            yield from list(operator(node))[: 1 if operator is operator_string else None]
    if isinstance(node, cst.Expr) and not isinstance(node.value, cst.BaseString):
        yield cst.Pass()
    if isinstance(node, (cst.If, cst.While, cst.CompIf)):
        test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        yield node.with_changes(test=cst.UnaryOperation(cst.Not(), test))


class _Reach:
    """Which tests run which lines, and how many seconds each takes."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._coverage = coverage.Coverage(data_file=None, include=[*map(os.path.abspath, paths)], config_file=False)
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration

    def pytest_runtest_logfinish(self) -> None:
        self._coverage.switch_context("")

    def measure(self, tests: Sequence[str]) -> tuple[int, Mapping[str, float], Mapping[str, Mapping[int, list[str]]]]:
        with self._coverage.collect():
            code = pytest.main([*_PYTEST, *tests], plugins=[self])
        data = self._coverage.get_data()
        return code, self.seconds, {path: data.contexts_by_lineno(path) for path in data.measured_files()}


class _Chosen:
    """Runs these tests alone, in this order; an example that fails is enough, it need not be a small one."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._order = {test: number for number, test in enumerate(tests)}

    def pytest_collection(self) -> None:
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutate", hypothesis.settings.default, database=None, phases=phases)
        hypothesis.settings.load_profile("mutate")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((one for one in items if one.nodeid in self._order), key=lambda one: self._order[one.nodeid])


def _run(mutant: _Mutant, tests: Sequence[str]) -> None:
    """Exit as these tests do with the mutant in place of its file; nothing of muster is imported yet."""
    os.setsid()
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
    path, as_written = str(Path(mutant.path).resolve()), SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:  # noqa: ANN401 - code, or None
        return compile(mutant.source, path, "exec") if loader.path == path else as_written(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]
    files = sorted({test.partition("::")[0] for test in tests})
    os._exit(pytest.main([*_PYTEST, f"--timeout={_TEST_SECONDS}", *files], plugins=[_Chosen(tests)]))


def _survives(mutant: _Mutant, tests: Sequence[str], seconds: float) -> bool:
    process = _FORK.Process(target=_run, args=(mutant, tests))
    process.start()
    process.join(30 + 4 * seconds)
    if process.exitcode is None:
        os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
    return process.exitcode == 0


def main() -> None:
    """Exit with 0 when enough mutants were noticed."""
    parser = argparse.ArgumentParser(prog="hack.mutate", description=__doc__)
    parser.add_argument("--seed", type=int, default=13, help="of the draw")
    parser.add_argument("--number", type=int, default=400, help="how many mutants are drawn")
    parser.add_argument("--least", type=float, default=95.0, help="per cent of them that must be noticed")
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of single mutants of the draw")
    given = parser.parse_args()
    # Failing examples of mutants are of no use to other runs.
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.mkdtemp()
    paths = sorted(str(path) for root in ("muster", "webhook", "controller") for path in Path(root).rglob("*.py"))
    texts = {path: Path(path).read_text() for path in paths if not path.startswith(_LEFT_OUT)}
    sources = {path: text for path, text in texts.items() if not re.search(_IO, text)}
    with ProcessPoolExecutor(1, mp_context=_FORK) as pool:
        code, seconds, reached = pool.submit(_Reach(sources).measure, ["tests/unit"]).result()
    if code:
        sys.exit("the unit tests fail without any mutant")
    noticed, survivors = 0, ""
    drawn = [*enumerate(islice(_drawn(sources, given.seed), given.number))]
    for number, mutant in drawn if given.only is None else [drawn[one] for one in given.only]:
        lines = reached.get(str(Path(mutant.path).resolve()), {})
        tests = {test for line in range(mutant.first, mutant.last + 1) for test in lines.get(line, ())}
        if "" in tests:
            # It runs at import: all tests of the file may notice.
            tests = {test for of_line in lines.values() for test in of_line}
        ordered = sorted(tests - {""}, key=lambda test: (seconds[test], test))
        survived = not ordered or _survives(mutant, ordered, sum(seconds[test] for test in ordered))
        print(f"{number:>3} {'SURVIVED' if survived else 'noticed':<8} {mutant.path}:{mutant.first}", flush=True)
        noticed += not survived
        if survived:
            before, after = (text.splitlines(keepends=True) for text in (sources[mutant.path], mutant.source))
            change = "".join(difflib.unified_diff(before, after, mutant.path, f"mutant {number}", n=0))
            survivors += f"\n{change}survives {len(ordered)} tests\n"
    score = 100 * noticed / len(given.only or drawn)
    print(f"{survivors}\n{score:.2f} % of the mutants noticed")
    sys.exit(f"less than {given.least:g} %" if score < given.least else 0)


if __name__ == "__main__":
    main()
