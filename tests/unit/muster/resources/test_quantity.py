"""Quantities agree with apimachinery's resource.Quantity; the expected values were read off a real apiserver."""

import contextlib
import tracemalloc
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.resources.quantity import ZERO, InvalidQuantityError, Quantity, parse_quantity
from tests.support.cases import cases

NANO = 10**9


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("1", NANO, id="whole"),
        pytest.param("+1", NANO, id="plus sign"),
        pytest.param("-1", -NANO, id="minus sign"),
        pytest.param("00012", 12 * NANO, id="leading zeros"),
        pytest.param(".5", NANO // 2, id="nothing before the point"),
        pytest.param("5.", 5 * NANO, id="nothing after the point"),
        pytest.param("+.5", NANO // 2, id="sign before the point"),
        pytest.param("1n", 1, id="nano"),
        pytest.param("1u", 1_000, id="micro"),
        pytest.param("100m", NANO // 10, id="milli"),
        pytest.param("1k", 10**3 * NANO, id="kilo"),
        pytest.param("1M", 10**6 * NANO, id="mega"),
        pytest.param("1G", 10**9 * NANO, id="giga"),
        pytest.param("1T", 10**12 * NANO, id="tera"),
        pytest.param("1P", 10**15 * NANO, id="peta"),
        pytest.param("1E", 10**18 * NANO, id="exa, not an exponent"),
        pytest.param("1Ki", 2**10 * NANO, id="kibi"),
        pytest.param("1.5Gi", 3 * 2**29 * NANO, id="binary fraction"),
        pytest.param("1Ei", 2**60 * NANO, id="exbi"),
        pytest.param("1e3", 10**3 * NANO, id="exponent"),
        pytest.param("1E3", 10**3 * NANO, id="upper-case exponent"),
        pytest.param("1e+3", 10**3 * NANO, id="signed exponent"),
        pytest.param("15e-1", 3 * NANO // 2, id="negative exponent"),
        pytest.param(" 1 ", NANO, id="blanks around it"),
        pytest.param("\u00a01\u3000", NANO, id="blanks of other scripts"),
        *(
            pytest.param(text, 0, id=f"no digit at all: {text}")
            for text in ("+", "-", ".", "m", "-.Gi", "Ti", "e3", "e-9")
        ),
    ],
)
def test_reads_what_the_apiserver_takes(text: str, nano: int) -> None:
    assert parse_quantity(text).nano == nano


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "Pi", "-.Ei", "e-10", ".e-64", "1.2.3", "1 Gi", "1\n", "\t1", "\u20281", "1_000", "0x10", "1,5"),
        *("1K", "1ki", "1KI", "1gi", "1B", "1Z", "1Zi", "1g", "1t", "1mm", "1mi", "1i", "1e", "1e+", "1e3Ki", "1e3k"),
        *("NaN", "nan", "Infinity", "inf", "true", "True", "null", "--1", "+-1", "1e1.5"),
        *("\u0661", "1\u00b2", "\u00bd", "1\uff4d"),  # an Arabic one, a square, a half, a wide m
    ],
)
def test_refuses_what_the_apiserver_refuses_and_quotes_it(text: str) -> None:
    with pytest.raises(InvalidQuantityError) as refused:
        parse_quantity(text)
    assert f'"{text}"' in str(refused.value)


@cases(
    "number, canonical",
    ("integer", 1, "1"),
    ("float", 1.5, "1500m"),
    ("float that binary cannot hold", 0.1, "100m"),
    ("large integer", 2**31, "2147483648"),
    ("float in exponent form", 1e22, "10e21"),
    ("float that only Python writes with an exponent", 1e16, "10P"),
    ("small float that only Python writes with an exponent", -1e-5, "-10u"),
    ("tiny float", 1e-7, "100e-9"),
)
def test_numbers_count_as_their_json_text(number: float, canonical: str) -> None:
    assert str(parse_quantity(number)) == canonical


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1.5", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("1.5Ki", "1536"),
        ("1.1Ki", "1126400m"),
        ("1000", "1k"),
        ("1.5e3", "1500"),
        ("1e3", "1e3"),
        ("1e4", "10e3"),
        ("512Mi", "512Mi"),
        ("1024Mi", "1Gi"),
        ("1023Ki", "1023Ki"),
        ("0.5Ki", "512"),
        ("1024", "1024"),
        ("1500m", "1500m"),
        ("2000m", "2"),
        ("0.001", "1m"),
        ("0.000001", "1u"),
        ("100", "100"),
        ("1000000", "1M"),
        ("123456789", "123456789"),
        ("-1.5", "-1500m"),
        ("-2Gi", "-2Gi"),
        ("0Gi", "0"),
        ("-0", "0"),
        ("+1", "1"),
        ("00012", "12"),
        ("5.", "5"),
        ("8Ei", "9223372036854775807"),
        ("999E", "999E"),
        ("1000E", "1e21"),
        ("10000E", "10e21"),
    ],
)
def test_prints_the_canonical_form(text: str, canonical: str) -> None:
    assert str(parse_quantity(text)) == canonical


@cases(
    "text, nano",
    ("a tenth of a nano", "0.1n", 1),
    ("ten digits after the point", "1.0000000001", NANO + 1),
    ("below zero, away from it", "-0.1n", -1),
    ("binary: 102.4 nano", "0.0000000001Ki", 103),
    ("smallest exponent", "1e-64", 1),
    ("zero stays zero", "0.0n", 0),
)
def test_rounds_away_from_zero_at_nano(text: str, nano: int) -> None:
    assert parse_quantity(text).nano == nano


@pytest.mark.parametrize(
    ("text", "milli"),
    [("0.1m", "1m"), ("1n", "1m"), ("1.0001", "1001m"), ("1001u", "2m"), ("2", "2"), ("1Gi", "1Gi"), ("0", "0")],
)
def test_rounds_up_to_milli_as_pods_do(text: str, milli: str) -> None:
    assert str(parse_quantity(text).rounded_up_to_milli()) == milli


@pytest.mark.parametrize("text", ["8Ei", "9Ei", "1000000Ei", "9" * 100 + "Gi"])
def test_binary_values_are_capped_as_the_apiserver_caps_them(text: str) -> None:
    assert parse_quantity(text).nano == (2**63 - 1) * NANO


def test_decimal_values_are_not_capped() -> None:
    assert parse_quantity("100E").nano == 10**20 * NANO


@cases(
    "hostile",
    ("exponent just too large", "1e65"),
    ("exponent just too small", "1e-65"),
    ("a number of ten million digits", "1e9999999"),
    ("an exponent of 120 digits", "1e" + "9" * 120),
    ("longer than any amount", "9" * 129),
    ("a million digits", "9" * 1_000_000),
    ("a million points", "1" + "." * 1_000_000),
    ("an integer that Python itself does not print", 10**5000),
    ("a large float", 1e300),
    ("infinity", float("inf")),
    ("not a number", float("nan")),
)
def test_hostile_input_is_refused_at_once_and_shortly(hostile: str | float) -> None:
    """Neither the work nor the message grows with what somebody sends; with large numbers work takes large memory."""
    tracemalloc.start()
    try:
        with pytest.raises(InvalidQuantityError) as refused:
            parse_quantity(hostile)
        _, highest = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert highest < 2**16
    assert len(str(refused.value)) < 250


texts = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "+", "-"]),
        st.text("0123456789", min_size=1, max_size=30),
        st.one_of(st.just(""), st.text("0123456789", max_size=15).map(lambda digits: "." + digits)),
        st.sampled_from(["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e0", "e3", "E-3", "e-12", "e+20"]),
    ),
)
quantities = texts.map(parse_quantity)
SCALE = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def exactly(text: str) -> Fraction:
    """The value by another road: decimal arithmetic without rounding."""
    for suffix, power in BINARY.items():
        if text.endswith(suffix):
            return Fraction(Decimal(text.removesuffix(suffix))) * Fraction(1024) ** power
    if text[-1] in SCALE:
        power = SCALE[text[-1]]
        return Fraction(Decimal(text[:-1])) * Fraction(10 ** max(power, 0), 10 ** max(-power, 0))
    return Fraction(Decimal(text))


@given(texts)
def test_the_value_is_exact_up_to_a_nano_away_from_zero(text: str) -> None:
    got, exact = Fraction(parse_quantity(text).nano, NANO), exactly(text)
    capped = text.endswith("i") and abs(exact) > 2**63 - 1
    assert capped or 0 <= (got - exact) * (1 if exact >= 0 else -1) < Fraction(1, NANO)


@given(quantities)
def test_what_is_printed_reads_as_the_same(amount: Quantity) -> None:
    assert parse_quantity(str(amount)) == amount


@given(quantities)
def test_printing_is_canonical(amount: Quantity) -> None:
    """Equal text for what was printed and read again: no form has a form of its own."""
    again = str(parse_quantity(str(amount)))
    assert str(parse_quantity(again)) == again


@given(st.lists(quantities, max_size=6))
def test_sums_lose_nothing(parts: list[Quantity]) -> None:
    assert sum(parts, ZERO).nano == sum(part.nano for part in parts)


@given(quantities, quantities)
def test_compares_by_value_alone(one: Quantity, other: Quantity) -> None:
    assert (one < other, one == other, one > other) == (
        one.nano < other.nano,
        one.nano == other.nano,
        one.nano > other.nano,
    )


def test_the_same_amount_in_other_words_is_equal_and_hashes_alike() -> None:
    one, other = parse_quantity("1Ki"), parse_quantity("1024")
    assert one == other
    assert hash(one) == hash(other)


@given(quantities, quantities)
def test_subtraction_undoes_addition(one: Quantity, other: Quantity) -> None:
    assert one + other - other == one


@cases(
    "first, second, text",
    ("binary first", "1Gi", "1024", "1048577Ki"),
    ("decimal first", "1k", "1Ki", "2024"),
    ("zero has no family", "0", "1Gi", "1Gi"),
    ("less than one is decimal, whatever its suffix", "0.00048828125Ki", "1023.5", "1024"),
)
def test_a_sum_is_printed_in_the_family_of_its_first_part(first: str, second: str, text: str) -> None:
    assert str(parse_quantity(first) + parse_quantity(second)) == text


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing else than InvalidQuantityError comes out, whatever goes in."""
    with contextlib.suppress(InvalidQuantityError):
        parse_quantity(text)


def test_a_sum_beyond_the_largest_suffix_keeps_it() -> None:
    """One amount is capped at 8Ei, a sum of many is not; no suffix comes after Ei."""
    assert str(parse_quantity("4Ei") * 256) == "1024Ei"
