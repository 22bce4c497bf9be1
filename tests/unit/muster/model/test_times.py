"""Times as objects have them, and durations as people write them."""

import pytest

from muster.model.times import duration_of, duration_text, durations_of, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("10m", 600.0),
        ("1h30m", 5400.0),
        ("1h0m5s", 3605.0),
        ("0s", 0.0),
        ("", None),
        ("10", None),
        ("m", None),
        ("-10m", None),
        ("1.5h", None),
        ("30s10m", None),
        ("10 m", None),
        ("٣m", None),
        pytest.param(f"{'9' * 18}h", (10.0**18 - 1) * 3600, id="eighteen digits"),
        pytest.param(f"{'9' * 400}s", None, id="more than a float holds"),
        pytest.param(f"{'9' * 5000}s", None, id="more digits than int reads"),
    ],
)
def test_a_duration_is_hours_minutes_and_seconds_in_this_order(text: str, seconds: float | None) -> None:
    assert duration_of(text) == seconds


@pytest.mark.parametrize("text", ["30s", "10m", "1h30m", "72h", "1h5s", "0s"])
def test_a_duration_is_written_as_it_is_read(text: str) -> None:
    assert duration_text(duration_of(text) or 0) == text


@pytest.mark.parametrize(
    ("text", "durations"),
    [
        ("2h10m", (7800.0,)),
        ("10m 1h 4h", (600.0, 3600.0, 14400.0)),
        pytest.param("10m 10m", (600.0, 600.0), id="as long as the one before"),
        pytest.param("1h 10m", (), id="shorter than the one before"),
        pytest.param("0s 1h", (), id="nothing"),
        ("10m  1h", ()),
        ("10m soon", ()),
        ("", ()),
        pytest.param(" ".join(f"{n}m" for n in range(1, 10_000)), (), id="more than muster writes"),
    ],
)
def test_former_run_times_are_durations_in_order(text: str, durations: tuple[float, ...]) -> None:
    assert durations_of(text) == durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:30Z", 30.0),
        ("1970-01-01T01:00:30.5+01:00", 30.5),
        ("0001-01-01T00:00:00Z", -62135596800.0),
        ("1970-01-01T00:00:30", None),
        ("soon", None),
        # In UTC these are no years that can be written.
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", None),
    ],
)
def test_a_time_is_seconds_since_1970_in_utc(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds
