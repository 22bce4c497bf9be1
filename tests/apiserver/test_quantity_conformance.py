"""`parse_quantity` and `str` do as the real apiserver does, for thousands of texts.

Where: the capacities of a ResourceSlice, created with dryRun. They are the one built-in list of bare quantities: 4,096
of them in a request, of any sign and in nano precision, while the resource lists of pods, nodes and quotas are
rounded to milli and must not be negative, and custom resources are not read as quantities at all.
One text that is none refuses the whole request, and the apiserver does not say which: so what we take goes in together,
and what we refuse goes in alone.
"""

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hack.testbed import Testbed
from hack.testbed.api import Api
from muster.resources.quantity import InvalidQuantityError, Quantity, parse_quantity
from tests.support.examples import examples

_SIGNS = ("", "", "", "+", "-")
_DECIMAL = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E")
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_WRONG = ("K", "ki", "KI", "gi", "mi", "B", "Z", "Zi", "g", "t", "mm", "i", "e", "E+", "e-", "e3Ki", "k3", "Eie3", "em")
# int64 from both sides, the fast path's 18 digits, 2^60, powers around each suffix, and 10^21 where suffixes end.
_LANDMARKS = (
    *(2**63 - 1, 2**63, 2**63 + 1, 2**60, 2**60 - 1, 2**53, 2**31, 10**18 - 1, 10**18, 10**18 + 1, 10**21, 10**21 + 1),
    *(1024**power for power in range(7)),
    *(1023, 1025, 1536, 999, 1001, 7, 8, 12, 120, 1200, 12000, 0),
)
_BLANKS = (" ", "  ", "\t", "\n", "\u00a0", "\u2003", "\u2028", "\u3000", "\u0085", "\ufeff", "\u200b")
_FOREIGN = ("١", "２", "²", "½", "٫", "，", "_", ",", "'", '"', "\\", "\x00", "x", "−")  # noqa: RUF001 (the point)
_ALPHABET = "0011234567899.+-eEinumkKMGTP "

_digits = st.text("0123456789", max_size=30)
_exponents = st.builds(
    lambda letter, power: f"{letter}{power}",
    st.sampled_from("eE"),
    st.sampled_from(
        [*(str(power) for power in range(-64, 65)), "+0", "-0", "+3", "007", "-012", "+64"],
    ),
)
_suffixes = st.one_of(st.sampled_from(_DECIMAL), st.sampled_from(_BINARY), _exponents)

well_formed = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(_SIGNS),
        st.one_of(_digits, st.sampled_from(_LANDMARKS).map(str)),
        st.one_of(st.just(""), st.just("."), _digits.map(lambda digits: f".{digits}")),
        _suffixes,
    ),
)
any_text = st.one_of(
    well_formed,
    st.text(_ALPHABET, max_size=8),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    st.builds("".join, st.tuples(st.sampled_from(_BLANKS), well_formed, st.sampled_from(_BLANKS))),
)


def edge_texts(seed: int, count: int) -> list[str]:
    """So many different texts, the same for the same seed; about half of them are no quantities."""
    chance = random.Random(seed)  # noqa: S311 (no secret)
    texts: dict[str, None] = {}
    for text in _edges(chance):
        texts.setdefault(text)
        if len(texts) == count:
            break
    return list(texts)


def _edges(chance: random.Random) -> Iterator[str]:
    while True:
        text = _number(chance) + _suffix(chance)
        yield text
        at = chance.randint(0, len(text))
        match chance.randrange(7):
            case 0:
                yield text[:at] + chance.choice(_BLANKS) + text[at:]
            case 1:
                yield text[:at] + chance.choice(_FOREIGN) + text[at:]
            case 2:
                yield text[:at] + chance.choice(_ALPHABET) + text[at:]
            case 3:
                yield text[:at] + text[at + 1 :]
            case 4:
                yield text.swapcase()
            case 5:
                yield _number(chance) + chance.choice(_WRONG)
            case _:
                yield "".join(chance.choice(_ALPHABET) for _ in range(chance.randint(0, 6)))


def _number(chance: random.Random) -> str:
    sign = chance.choice(_SIGNS)
    match chance.randrange(6):
        case 0:
            body = str(chance.choice(_LANDMARKS))
        case 1:
            body = "0" * chance.randint(0, 3) + str(chance.randrange(2000))
        case 2:
            body = str(chance.randrange(10 ** chance.randint(1, 40))) + "0" * chance.randint(0, 6)
        case 3:
            body = (
                chance.choice(("", "0", "1", "12")) + "." + "0" * chance.randint(0, 14) + chance.choice(("", "1", "5"))
            )
        case 4:
            whole, fraction = chance.randrange(5000), chance.randrange(10 ** chance.randint(1, 12))
            body = f"{whole}.{fraction}" + "0" * chance.randint(0, 3)
        case _:
            body = chance.choice(("", ".", "0", "5.", ".5", "1.", "0.", "000", "1..2", "+1", "--1"))
    return sign + body


def _suffix(chance: random.Random) -> str:
    match chance.randrange(3):
        case 0:
            return chance.choice(_DECIMAL)
        case 1:
            return chance.choice(_BINARY)
        case _:
            letter, sign = chance.choice("eE"), chance.choice(("", "+", "-"))
            return f"{letter}{sign}{chance.choice((0, 1, 2, 3, 6, 9, 10, 18, 21, 40, 63, 64))}"


_SLICES = "/apis/resource.k8s.io/v1/resourceslices?dryRun=All"
_PER_DEVICE, _PER_REQUEST = 32, 4096

# A failure names its texts: there is nothing to shrink.
one_request_an_example = settings(
    max_examples=examples(60), deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)

# What nobody has, and what would cost us dearly: the apiserver takes these, we do not.
DELIBERATELY_REFUSED = [
    *(f"1e{exponent}" for exponent in (65, 66, 100, 999, -65, -100, -999)),
    *("0e65", "+1.5E+65", "1" + "0" * 128, "0" * 129, "0." + "0" * 127 + "1", "1" * 126 + "Gi" + " "),
]

_floats = st.floats(-1e25, 1e25).filter(lambda number: not number or abs(number) > 1e-60)


def printed(calls: Api, values: Sequence[object]) -> list[str] | None:
    """What the apiserver makes of up to 4,096 values in one request; None when it refuses one of them."""
    devices = [
        {"name": f"d{at}", "capacity": {f"c{n}": {"value": one} for n, one in enumerate(values[at : at + _PER_DEVICE])}}
        for at in range(0, len(values), _PER_DEVICE)
    ]
    answer = calls("POST", _SLICES, _resource_slice(devices))
    return _values(answer.body) if answer.ok else None


def _resource_slice(devices: list[dict[str, Any]]) -> dict[str, Any]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "quantities"},
        "spec": {"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": devices},
    }


def _values(resource_slice: dict[str, Any]) -> list[str]:
    return [
        device["capacity"][f"c{n}"]["value"]
        for device in resource_slice["spec"]["devices"]
        for n in range(len(device["capacity"]))
    ]


def taken(calls: Api, text: str) -> bool:
    return printed(calls, [text]) is not None


def read(text: str) -> Quantity | None:
    try:
        return parse_quantity(text)
    except InvalidQuantityError:
        return None


def _deliberately_refused(text: str) -> bool:
    exponent = re.search("[eE][+-]?([0-9]+)$", text)
    return len(text) > 128 or (exponent is not None and int(exponent[1]) > 64)


def wrongly_taken(calls: Api, texts: Sequence[str]) -> list[str]:
    """Those that the apiserver refuses, found by halves."""
    if not texts or printed(calls, texts) is not None:
        return []
    if len(texts) == 1:
        return [*texts]
    middle = len(texts) // 2
    return wrongly_taken(calls, texts[:middle]) + wrongly_taken(calls, texts[middle:])


def assert_alike(calls: Api, texts: Iterable[str]) -> None:
    """Every one of the texts is taken or refused as the apiserver does, and printed alike when taken.

    A text that is near enough to canonical (`+1`, `1.500`, `00012`) comes back from the apiserver as it was sent, which
    says nothing about its value; with one zero more in its fraction, it is made canonical.
    """
    by_us = {text: read(text) for text in dict.fromkeys(texts) if not _deliberately_refused(text)}
    good = {text: _without_lost_size(amount) for text, amount in by_us.items() if amount is not None}
    assert wrongly_taken(calls, [*good]) == [], "taken by us, refused by the apiserver"
    bad = [text for text, amount in by_us.items() if amount is None]
    assert [
        text for text, there in zip(bad, calls.each(lambda text: taken(calls, text), bad), strict=True) if there
    ] == []
    differing = {text: there for text, there in _printed_each(calls, [*good]).items() if there != good[text]}
    echoed = {text: _one_zero_more(text.strip()) for text, there in differing.items() if there == text.strip()}
    again = _printed_each(calls, [*echoed.values()])
    differing |= {text: again[zero] for text, zero in echoed.items()}
    assert {text: there for text, there in differing.items() if there != good[text]} == {}


def _without_lost_size(amount: Quantity) -> str:
    """Our text, but for the apiserver's mistake that a test of its own is about."""
    return str(amount).partition("e")[0] if amount.format == "DecimalSI" else str(amount)


def _printed_each(calls: Api, texts: Sequence[str]) -> dict[str, str]:
    there: list[str] = []
    for at in range(0, len(texts), _PER_REQUEST):
        there += printed(calls, texts[at : at + _PER_REQUEST]) or []
    return dict(zip(texts, there, strict=True))


def _one_zero_more(text: str) -> str:
    number = text.rstrip("eEinumkKMGTP") if "e" not in text.lower() else text[: text.lower().index("e")]
    return number + ("0" if "." in number else ".0") + text[len(number) :]


@one_request_an_example
@given(texts=st.lists(well_formed, min_size=30, max_size=100))
def test_what_is_written_like_a_quantity_reads_and_prints_alike(calls: Api, texts: list[str]) -> None:
    assert_alike(calls, texts)


@one_request_an_example
@given(texts=st.lists(any_text, max_size=40))
def test_any_text_is_taken_or_refused_alike(calls: Api, texts: list[str]) -> None:
    assert_alike(calls, texts)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_edges_and_near_misses_are_read_refused_and_printed_alike(calls: Api, seed: int) -> None:
    assert_alike(calls, edge_texts(seed, examples(3000)))


@one_request_an_example
@given(amounts=st.lists(st.builds(Quantity, st.integers(-(10**40), 10**40)), min_size=20, max_size=100))
def test_what_we_print_stays_as_it_is_in_the_apiserver(calls: Api, amounts: list[Quantity]) -> None:
    """Whatever was added or multiplied: no amount changes on its way through the apiserver."""
    texts = [str(amount) for amount in amounts]
    assert printed(calls, texts) == texts


@given(numbers=st.lists(_floats | st.integers(-(2**63), 2**63 - 1), min_size=200, max_size=300))
@settings(one_request_an_example, max_examples=5)
def test_numbers_in_a_manifest_count_alike(bare_testbed: Testbed, numbers: list[float]) -> None:
    """As kubectl sends them: it reads a number and writes it as Go does."""
    devices = [{"name": f"d{n}", "capacity": {"c0": {"value": number}}} for n, number in enumerate(numbers[:128])]
    manifest = json.dumps(_resource_slice(devices))
    done = bare_testbed.kubectl("create", "--dry-run=server", "--output=json", "--filename=-", input=manifest)
    assert [str(parse_quantity(text)) for text in _values(json.loads(done.stdout))] == [
        str(parse_quantity(number)) for number in numbers[:128]
    ]


@pytest.mark.parametrize("text", DELIBERATELY_REFUSED)
def test_only_what_nobody_has_is_refused_by_us_alone(calls: Api, text: str) -> None:
    assert taken(calls, text)
    with pytest.raises(InvalidQuantityError):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "there", "ours"), [("1000E", "1", "1e21"), ("12000000E", "12", "12e24"), ("-1" + "0" * 24, "-1", "-1e24")]
)
def test_the_apiserver_loses_the_size_of_what_no_suffix_can_say_and_we_do_not(
    calls: Api, text: str, there: str, ours: str
) -> None:
    """A mistake of apimachinery, from 10^21 upwards: it has no suffix, and prints none."""
    assert printed(calls, [text, ours]) == [there, ours]
    assert str(parse_quantity(text)) == ours
