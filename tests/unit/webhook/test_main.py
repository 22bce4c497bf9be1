"""The webhook's command line."""

from __future__ import annotations

import sys

import pytest

from webhook.__main__ import main


@pytest.mark.parametrize(
    ("argument", "line"),
    [
        ("--validation=no", 'validation: "no" is not known; use one of deny, warn, off'),
        ("--validation-reason=NoPods=no", 'validation of NoPods: "no" is not known; use one of deny, warn, off'),
        ("--validation-reason=NoPod=warn", 'a reason: "NoPod" is not known; use one of Invalid, QueueNotFound, '),
    ],
)
def test_a_strictness_that_is_not_known_ends_it_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], argument: str, line: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["muster-webhook", argument])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert f"muster-webhook: error: {line}" in capsys.readouterr().err
