"""Exact Kubernetes quantities: `500m`, `1.5Gi`, `1e3`.

A quantity is an integer number of nano-units, so that sums and comparisons never lose anything, and it is printed in
the canonical form of the apiserver (apimachinery/pkg/api/resource/quantity.go). No float takes part in any of it.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from muster.model.objects import RawQuantity

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

_NANO = 10**9
_MILLI_IN_NANO = 10**6
_MAX_INT64 = 2**63 - 1
# The apiserver takes larger exponents and longer texts; no machine has 1e64 of anything, and a huge integer would cost
# us dearly.
_MAX_EXPONENT = 64
_MAX_LENGTH = 128
_GROUPS_OF_THREE = 3
_BINARY_STEP = 1024

_SYNTAX = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:(?P<binary>[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+)|(?P<decimal>[numkMGTPE]))?",
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()} | {0: ""}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_BINARY_SUFFIX = {power: suffix for suffix, power in _BINARY.items()} | {0: ""}
# The characters that Go's strings.TrimSpace removes from the JSON text; tabs and line ends are escaped there, and stay.
_BLANKS = " \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
# Without a single digit the apiserver reads 0, but only with the suffixes that its fast path knows.
_MIN_EXPONENT_WITHOUT_DIGITS = -9
_MAX_POWER_WITHOUT_DIGITS = _BINARY["Ti"]
# Between these, Go writes a float into JSON without an exponent.
_PLAIN_FLOATS = (1e-6, 1e21)


class InvalidQuantityError(ValueError):
    """The text is not a Kubernetes quantity; the message quotes it."""


@functools.total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An amount of a resource: `nano` billionths of its unit (cores, bytes, pieces), and the family of its suffix."""

    nano: int
    format: Format = field(default="DecimalSI")

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __bool__(self) -> bool:
        return self.nano != 0

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __mul__(self, count: int) -> Quantity:
        return Quantity(self.nano * count, self.format)

    def rounded_up_to_milli(self) -> Quantity:
        """Return the same amount in whole thousandths, as the apiserver stores every resource of a pod."""
        return Quantity(_divide_away_from_zero(self.nano, _MILLI_IN_NANO) * _MILLI_IN_NANO, self.format)

    def __str__(self) -> str:
        if not self.nano:
            return "0"
        whole, rest = divmod(abs(self.nano), _NANO)
        if self.format == "BinarySI" and not rest and whole >= _BINARY_STEP:
            power = 0
            while whole % _BINARY_STEP == 0 and power < max(_BINARY_SUFFIX):
                whole //= _BINARY_STEP
                power += 1
            return f"{self._sign}{whole}{_BINARY_SUFFIX[power]}"
        digits, exponent = abs(self.nano), -9
        while digits % 1000 == 0 and exponent < max(_DECIMAL_SUFFIX):
            digits //= 1000
            exponent += _GROUPS_OF_THREE
        if self.format == "DecimalExponent" or digits % 1000 == 0:
            # Beyond E there is no suffix: the apiserver would print 1000E as 1, but takes and keeps 1e21.
            while digits % 1000 == 0:
                digits //= 1000
                exponent += _GROUPS_OF_THREE
            return f"{self._sign}{digits}e{exponent}" if exponent else f"{self._sign}{digits}"
        return f"{self._sign}{digits}{_DECIMAL_SUFFIX[exponent]}"

    @property
    def _sign(self) -> str:
        return "-" if self.nano < 0 else ""


ZERO = Quantity(0)


def parse_quantity(raw: RawQuantity) -> Quantity:
    """Read a quantity as the apiserver does: nano precision rounded up, binary values capped at 2^63-1.

    Blanks around the text are dropped, and a text without any digit is 0, as there ("Gi", "+"). Numbers are taken as
    the JSON text that kubectl and the apiserver make of them (custom resources keep `cpu: 1` as a number). Raises
    InvalidQuantityError; two refusals are our own: exponents beyond 64 and texts of more than 128 characters.
    """
    if isinstance(raw, str):
        return _parse(raw)
    if isinstance(raw, int) and abs(raw) >= 10**_MAX_LENGTH:
        # Python itself refuses to print an integer of thousands of digits.
        raise InvalidQuantityError(f"a number of more than {_MAX_LENGTH} digits is not a quantity")
    if isinstance(raw, float) and _PLAIN_FLOATS[0] <= abs(raw) < _PLAIN_FLOATS[1]:
        return _parse(f"{Decimal(repr(raw)):f}")
    return _parse(str(raw))


@functools.lru_cache(maxsize=1024)
def _parse(text: str) -> Quantity:
    match = _SYNTAX.fullmatch(text.strip(_BLANKS)) if len(text) <= _MAX_LENGTH else None
    if match is None or not match[0]:
        raise _refusal(text)
    fraction = match["fraction"] or ""
    digits = (match["whole"] or "") + fraction
    format_: Format = "DecimalSI"
    power, exponent = 0, -len(fraction)
    if match["binary"]:
        format_ = "BinarySI"
        power = _BINARY[match["binary"]]
    elif match["exponent"]:
        format_ = "DecimalExponent"
        if abs(int(match["exponent"])) > _MAX_EXPONENT:
            raise InvalidQuantityError(f'"{text}" has an exponent beyond {_MAX_EXPONENT}')
        exponent += int(match["exponent"])
    elif match["decimal"]:
        exponent += _DECIMAL[match["decimal"]]
    if not digits and (power > _MAX_POWER_WITHOUT_DIGITS or exponent < _MIN_EXPONENT_WITHOUT_DIGITS):
        raise _refusal(text)
    scaled = int(digits or "0") * _BINARY_STEP**power
    exponent += 9
    nano = scaled * 10**exponent if exponent >= 0 else _divide_away_from_zero(scaled, 10**-exponent)
    if format_ == "BinarySI":
        nano = min(nano, _MAX_INT64 * _NANO)
        if 0 < nano < _NANO:
            format_ = "DecimalSI"
    return Quantity(-nano if match["sign"] == "-" else nano, format_)


def _refusal(text: str) -> InvalidQuantityError:
    shown = text if len(text) <= _MAX_LENGTH else text[:_MAX_LENGTH] + "…"
    return InvalidQuantityError(f'"{shown}" is not a quantity such as 500m, 2 or 1.5Gi')


def _divide_away_from_zero(value: int, by: int) -> int:
    return -(-value // by) if value >= 0 else value // by
