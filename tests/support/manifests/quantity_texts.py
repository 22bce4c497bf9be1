"""Texts that are, or nearly are, quantities: what people write, and every corner of the apiserver's parser."""

import random
from collections.abc import Iterator

from hypothesis import strategies as st

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
