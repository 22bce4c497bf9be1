from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.kube.errors import ApiError
from muster.kube.transport import LineSplitter


@given(
    lines=st.lists(st.binary(min_size=1, max_size=40).filter(lambda line: b"\n" not in line and line.strip())),
    half=st.binary(max_size=10).filter(lambda part: b"\n" not in part),
    cuts=st.lists(st.integers(0, 400)),
)
def test_any_chunking_gives_the_same_lines(lines: list[bytes], half: bytes, cuts: list[int]) -> None:
    """Where the network cuts the stream changes nothing, and half a line at the end is never given."""
    data = b"".join(line + b"\n" for line in lines) + half
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    splitter = LineSplitter(1000)
    got = [line for start, end in pairwise(edges) for line in splitter.feed(data[start:end])]
    assert got == lines


def test_a_line_above_the_limit_is_an_error_before_it_is_held() -> None:
    """A server that never sends a newline cannot fill the memory."""
    splitter = LineSplitter(10)
    assert splitter.feed(b"0123456789\n01234") == [b"0123456789"]
    with pytest.raises(ApiError, match="OversizedLine"):
        splitter.feed(b"567890")
