"""Texts of users in messages: suggestions for misspelled words, and names without control characters."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice

# From 0, nothing in common, to 1: one wrong, missing or additional letter in five.
_ALIKE = 0.8
# Most keys of one object; to compare one takes as long as to read a pod.
_MOST_KEYS = 64
_OWN = "muster.dev/"
# The fewest letters of a word with two of them swapped, and of one that is cut off.
_STEM = 4


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most like this one, "" if none is.

    Letter case, dashes and the like do not count, nor do two letters that are swapped; a word that is cut off, or
    longer, is like the whole one.
    """
    plain = {_plain(one): one for one in known}
    asked = _plain(word)
    if asked in plain:
        return plain[asked]
    if alike := get_close_matches(asked, plain, n=1, cutoff=_ALIKE):
        return plain[alike[0]]
    swaps = {asked[:at] + asked[at + 1] + asked[at] + asked[at + 2 :] for at in range(len(asked) - 1)}
    if len(asked) >= _STEM and (swapped := swaps & plain.keys()):
        return plain[min(swapped)]
    cut = [one for one in plain if min(len(one), len(asked)) >= _STEM and (one + " ").startswith(asked)]
    cut += [one for one in plain if len(one) >= _STEM and asked.startswith(one)]
    return plain[min(cut, key=len)] if cut else ""


def nearest_key(key: str, known: Iterable[str]) -> str:
    """Return the known key of a label or annotation whose domain and name both resemble this key's; "" for none."""
    domain, _, name = key.rpartition("/")
    known = [*known]
    domains = {one.rpartition("/")[0] for one in known}
    near = nearest(domain, domains) if domain else ""
    names = {one.rpartition("/")[2]: one for one in known if one.rpartition("/")[0] == near}
    return names.get(nearest(name, names), "")


def unread_keys(found: Mapping[str, str], read: Collection[str]) -> dict[str, str]:
    """Return the annotations of an object that seem meant for muster and are not read there, each with its cure.

    These are keys that resemble one of the keys `read`, where the object does not have that one too, and all others in
    muster's own domain.
    """
    cures: dict[str, str] = {}
    longest = 2 * max(map(len, read))
    for key in islice(found, _MOST_KEYS):
        if key in read or len(key) > longest:
            continue
        meant = nearest_key(key, read)
        if meant and meant not in found:
            cures[key] = f"unknown annotation; did you mean {meant}?"
        elif key.startswith(_OWN):
            cures[key] = "unknown annotation; remove it"
    return cures


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence: "; did you mean X?", or "" without a suggestion."""
    found = nearest(word, known)
    return f"; did you mean {found}?" if found else ""


def listed(words: Sequence[str], most: int = 10) -> str:
    """The first words, separated by commas, and how many more there are."""
    rest = len(words) - most
    return ", ".join(words[:most]) + (f" and {rest} more" if rest > 0 else "")


def _plain(word: str) -> str:
    return "".join(letter for letter in word.lower() if letter.isalnum())


def printable(text: str) -> str:
    """Return the text on one line, without sequences that move a terminal's cursor or change its colours."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
