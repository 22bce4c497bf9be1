"""Words for faults of a text: what keeps it from being YAML, and variables that are not filled in."""

import re

import yaml

FILL_IN = "is a variable that is not filled in"
_LONGEST = 80
# Characters of a text that are searched, so that no text takes long.
_LOOKED_AT = 1_000

# By its form, what fills in a variable: templates of Helm and Jinja, vars of kustomize, the shell's, and others.
_VARIABLES = (
    (re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL), "render it first: helm template CHART | muster plan -f -"),
    (re.compile(r"\$\([\w.-]+\)"), "render it first: kubectl kustomize DIRECTORY | muster plan -f -"),
    (re.compile(r"\$\{[^}]*\}|\$[A-Za-z_]\w*"), "fill it in first: envsubst < FILE | muster plan -f -"),
    (re.compile(r"@[A-Za-z_][\w.-]*@|<[A-Za-z_][^<>]*>|%[A-Za-z_]\w*%"), "fill it in first"),
)
_INDENTING_TAB = re.compile(r"[ ]*\t")
_TWO_COLONS = re.compile(r"[^#'\"]*:\s[^#'\"]*:(\s|$)")


def variable_hint(text: str) -> str:
    """What to do about a text with a variable that is not filled in; "" for any other text."""
    for form, cure in _VARIABLES:
        if (found := form.search(text[:_LOOKED_AT])) is not None:
            shown = text if len(text) <= _LONGEST else found[0]
            return f'"{shown[:_LONGEST]}" {FILL_IN}; {cure}'
    return ""


# The words of Python's parser of JSON, and those that a user needs.
_JSON = {
    "Expecting value": "a value is missing, or is not JSON",
    "Expecting property name enclosed in double quotes": "a key in double quotes is missing",
    "Illegal trailing comma before end of object": 'a "," before the end of an object',
    "Illegal trailing comma before end of array": 'a "," before the end of a list',
    "Expecting ',' delimiter": 'a "," or a closing bracket is missing',
    "Expecting ':' delimiter": 'a ":" is missing after a key',
    "Unterminated string starting at": "a quotation mark is not closed",
    "Invalid control character at": "a line break or another control character in a string",
    "Invalid \\escape": 'an unknown escape after "\\"',
}


def json_words(error: ValueError) -> str:
    """Why a text is not JSON."""
    problem = str(getattr(error, "msg", error))
    return _JSON.get(problem, problem)


def yaml_fault(error: yaml.YAMLError, text: str) -> tuple[int, str]:
    """The line at which a parser of YAML stopped, 0 if it is not known, and the fault, with what to do."""
    mark, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
    if mark is None:
        position = getattr(error, "position", None)
        line = 0 if position is None else text.count("\n", 0, position) + 1
        return (line, "control characters are not allowed" if "control" in str(error) else problem)
    at, begun = mark.line + 1, context.line + 1 if context else mark.line + 1
    lines = text.split("\n", at)
    written = lines[at - 1][:_LOOKED_AT] if len(lines) >= at else ""
    if _INDENTING_TAB.match(written):
        return (at, "a tab cannot indent YAML; use spaces")
    if problem == "could not find expected ':'":
        return (begun, 'a key without ":"; add it, or indent the text below its key')
    if problem == "found unexpected end of stream" and context:
        return (begun, "a quotation mark is not closed")
    if problem == "found character that cannot start any token":
        rest = written[mark.column :].strip()
        return (at, f'"{rest[:1]}" cannot begin a value; {variable_hint(rest) or "put the value in quotes"}')
    if problem == "did not find expected node content":
        return (at, "a value, or the bracket that closes a list or an object, is missing")
    if "',' or" in problem:
        bracket = "]" if "sequence" in str(getattr(error, "context", "")) else "}"
        words = f'a "," or the "{bracket}" that closes line {begun} is missing'
        return (at, "; ".join(filter(None, (words, variable_hint(written)))))
    return (at, _indentation(problem, at, begun, written))


def _indentation(problem: str, at: int, begun: int, written: str) -> str:
    """The words for a problem that is mostly one of indentation, in a line of a block that began in another."""
    look = f"check the indentation of lines {at - 1} and {at}" if at > 1 else "check the indentation"
    if problem.startswith("mapping values are not allowed"):
        if _TWO_COLONS.match(written):
            return f'two ": " in one line; put the value in quotes, or {look}'
        return f"a key is indented more than its place allows; {look}"
    if problem == "did not find expected key":
        if begun == at:
            return "text after the end of a value; put the whole value in quotes"
        return f"not indented as the other lines of its block, which begins in line {begun}; {look}"
    if problem == "found unknown escape character":
        return 'an unknown escape after "\\"; use single quotes'
    return f"{problem}; {look}" if "expected" in problem or "block" in problem else problem
