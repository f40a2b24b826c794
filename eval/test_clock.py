"""One owner time zone decides every stamp, day and period (spec 2.3)."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from echo_core.clock import Clock, parse_day, parse_period, period_of
from echo_core.errors import InvalidArgument, Misconfigured
from hypothesis import given
from hypothesis import strategies as st


def test_a_fixed_clock_fixes_every_stamp() -> None:
    """One instant, read in the owner's zone, gives all forms of spec 2."""
    clock = Clock("Europe/Berlin", "2026-11-30T14:05:09+01:00")
    assert clock.instant() == "2026-11-30T14:05:09+01:00"
    assert (clock.day(), clock.minute(), clock.file_stamp()) == ("2026-11-30", "14:05", "2026-11-30-1405")
    assert (clock.month(), clock.today(), clock.zone_name) == ("2026-11", date(2026, 11, 30), "Europe/Berlin")


@pytest.mark.parametrize(
    ("zone", "instant", "day"),
    [
        ("America/Chicago", "2026-12-01T02:00:00Z", "2026-11-30"),
        ("Pacific/Tongatapu", "2026-11-30T23:30:00Z", "2026-12-01"),
        ("UTC", "2026-11-30T23:59:59.999Z", "2026-11-30"),
    ],
)
def test_today_is_the_owners_day(zone: str, instant: str, day: str) -> None:
    """A server on UTC names the day its owner lives in, east and west of it."""
    assert Clock(zone, instant).day() == day


def test_stamps_carry_the_offset_of_their_season() -> None:
    """Summer time, winter time and the two nights between are told apart."""
    stamps = [
        Clock("Europe/Berlin", instant).instant()
        for instant in ("2026-07-01T12:00", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-12-01T12:00:00")
    ]
    assert stamps == [
        "2026-07-01T12:00:00+02:00",
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T02:30:00+01:00",
        "2026-12-01T12:00:00+01:00",
    ]


def test_a_queued_write_is_replayed_at_its_own_time() -> None:
    """`at` gives a clock of the same zone at a stored instant, and leaves the first one alone."""
    clock = Clock("Asia/Tokyo", "2026-11-30T00:00:00Z")
    assert clock.at("2026-01-01T00:00:00+00:00").instant() == "2026-01-01T09:00:00+09:00"
    assert clock.instant() == "2026-11-30T09:00:00+09:00"
    with pytest.raises(InvalidArgument):
        clock.at("yesterday")


def test_a_running_clock_has_whole_seconds_and_an_offset() -> None:
    """Without a fixed instant, in the machine's zone, stamps are still aware."""
    now = Clock().now()
    assert now.utcoffset() is not None
    assert now.microsecond == 0


@pytest.mark.parametrize(
    ("zone", "fixed", "setting"),
    [
        ("Mars/Olympus", "", "ECHO_TZ"),
        ("../../etc/passwd", "", "ECHO_TZ"),
        ("Europe", "", "ECHO_TZ"),
        ("a\x00b", "", "ECHO_TZ"),
        ("UTC", "noon", "ECHO_CLOCK"),
        ("UTC", "2026-02-30", "ECHO_CLOCK"),
        ("Asia/Tokyo", "9999-12-31T23:00Z", "ECHO_CLOCK"),
    ],
)
def test_a_wrong_setting_is_named(zone: str, fixed: str, setting: str) -> None:
    """A zone or an instant that does not exist is misconfigured, by the name of its setting."""
    with pytest.raises(Misconfigured, match=setting):
        Clock(zone, fixed)


def test_a_day_is_read_or_refused_with_what_is_allowed() -> None:
    """Only real days in one form; the refusal names the field and an example."""
    assert parse_day(" 2026-02-28 ", "since") == date(2026, 2, 28)
    for wrong in ("2026-02-30", "28.2.2026", "20260228", "2026-2-8", "", "today", "２０２６-02-28"):
        with pytest.raises(InvalidArgument) as refused:
            parse_day(wrong, "since")
        assert refused.value.data["field"] == "since"


@pytest.mark.parametrize(
    ("text", "name", "folder", "first", "last"),
    [
        ("2026-W49", "2026-W49", "weekly", date(2026, 11, 30), date(2026, 12, 6)),
        ("2026-w53", "2026-W53", "weekly", date(2026, 12, 28), date(2027, 1, 3)),
        ("2026-11", "2026-11", "monthly", date(2026, 11, 1), date(2026, 11, 30)),
        ("2024-02", "2024-02", "monthly", date(2024, 2, 1), date(2024, 2, 29)),
        ("2026-q4", "2026-Q4", "quarterly", date(2026, 10, 1), date(2026, 12, 31)),
        ("2026", "2026", "annual", date(2026, 1, 1), date(2026, 12, 31)),
    ],
)
def test_a_period_has_its_name_folder_and_days(text: str, name: str, folder: str, first: date, last: date) -> None:
    """Weeks are ISO weeks; all days from first to last belong to it."""
    period = parse_period(text, "period")
    assert (period.name, period.folder, period.first, period.last) == (name, folder, first, last)
    assert period.holds(first)
    assert period.holds(last)
    assert not period.holds(last + timedelta(days=1))


@pytest.mark.parametrize(
    "text", ["2025-W53", "2026-W00", "2026-13", "2026-Q5", "2026-1", "0000", "9999-W52", "", "week"]
)
def test_a_period_that_does_not_exist_is_refused(text: str) -> None:
    """Week 53 of a year that has none, month 13 and the like name the field."""
    with pytest.raises(InvalidArgument) as refused:
        parse_period(text, "period")
    assert refused.value.data["field"] == "period"


@given(st.dates(date(1, 1, 8), date(9999, 12, 20)), st.sampled_from(["week", "month", "quarter", "year"]))
def test_a_periods_name_leads_back_to_it(day: date, kind: str) -> None:
    """The period that holds a day is the one its name parses to."""
    period = period_of(kind, day)
    assert period.holds(day)
    assert parse_period(period.name, "period") == period
