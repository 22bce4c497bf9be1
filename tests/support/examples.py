"""How many examples a test draws: all, or a quarter where `MUSTER_EXAMPLES=few`, as `make check` has it.

What one runs all day is to be quick; `make test-all`, `make mutate` and a plain `pytest` draw all of them.
"""

import os

_PART = 4


def examples(number: int) -> int:
    """Return how many of so many examples, histories or seeds are drawn in this run, one at least."""
    return max(number // _PART, 1) if os.environ.get("MUSTER_EXAMPLES") == "few" else number
