"""One clock for every stamp, and the days and periods it makes (spec 2.3)."""
from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from echo_core.errors import InvalidArgument, Misconfigured

_INSTANT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s?(?:([Zz])|([+-]\d\d):?(\d\d))?)?", re.ASCII
)
_PERIOD = re.compile(r"(\d{4})(?:-(?:W(\d\d)|Q([1-4])|(\d\d)))?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
FOLDERS = {"week": "weekly", "month": "monthly", "quarter": "quarterly", "year": "annual"}
"""Each kind of period and its folder under `journal/`."""


class Clock:
    """The owner's wall clock. zone_name: IANA name, "" = the machine's zone; fixed: an ISO instant, "" = run.

    Raises Misconfigured naming ECHO_TZ or ECHO_CLOCK. A fixed instant without an offset is read in the owner's zone.
    """

    def __init__(self, zone_name: str = "", fixed: str = "") -> None:
        self.zone_name = zone_name
        self._zone = _load_zone(zone_name)
        self._fixed: datetime | None = None
        if fixed:
            try:
                self._fixed = _read_instant(fixed, self._zone)
            except (ValueError, OverflowError) as error:
                raise Misconfigured(
                    f"ECHO_CLOCK is no ISO instant: {fixed[:40]!r}", hint="Write it as 2026-11-30T14:05:09+01:00."
                ) from error

    def at(self, instant: str) -> Clock:
        """A clock of the same zone that stands at `instant` (ISO). Raises InvalidArgument."""
        clock = Clock(self.zone_name)
        try:
            clock._fixed = _read_instant(instant, self._zone)
        except (ValueError, OverflowError) as error:
            raise InvalidArgument(f"no ISO instant: {instant[:40]!r}", field="instant") from error
        return clock

    def now(self) -> datetime:
        """This moment in the owner's zone, whole seconds."""
        moment = self._fixed or datetime.now(timezone.utc)
        return moment.astimezone(self._zone).replace(microsecond=0)

    def today(self) -> date:
        """The owner's calendar day."""
        return self.now().date()

    def day(self) -> str:
        """Today as `2026-11-30`."""
        return self.today().isoformat()

    def minute(self) -> str:
        """The time of day as `14:05`."""
        return self.now().strftime("%H:%M")

    def instant(self) -> str:
        """Now as `2026-11-30T14:05:09+01:00`."""
        return self.now().isoformat(timespec="seconds")

    def file_stamp(self) -> str:
        """Now for a file name that sorts by time: `2026-11-30-1405`."""
        return self.day() + self.now().strftime("-%H%M")

    def month(self) -> str:
        """This month as `2026-11`."""
        return self.day()[:7]


def _load_zone(name: str) -> tzinfo | None:
    """The zone of an IANA name; None, the machine's zone, for "". Raises Misconfigured."""
    if not name:
        return None
    if name.upper() == "UTC":
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise Misconfigured(
            f"ECHO_TZ names no time zone: {name[:40]!r}",
            hint="Use an IANA name such as Europe/Berlin; on Windows install the tzdata package.",
        ) from error


def _read_instant(text: str, zone: tzinfo | None) -> datetime:
    """An aware moment; without an offset it is wall time in `zone`. Raises ValueError, OverflowError."""
    match = _INSTANT.fullmatch(text.strip())
    if not match:
        raise ValueError(text)
    day, minute, second, utc, hours, minutes = match.groups()
    offset = "+00:00" if utc else f"{hours}:{minutes}" if hours else ""
    moment = datetime.fromisoformat(f"{day}T{minute or '00:00'}:{second or '00'}{offset}")
    if moment.tzinfo is None and zone is not None:
        moment = moment.replace(tzinfo=zone)
    return moment.astimezone(zone)


class Period(NamedTuple):
    """A named stretch of days: `name` as in the file name, `first` and `last` day, both inside.

    kind: week, month, quarter or year. folder: its folder under `journal/`.
    """

    name: str
    kind: str
    first: date
    last: date

    @property
    def folder(self) -> str:
        """weekly, monthly, quarterly or annual."""
        return FOLDERS[self.kind]

    def holds(self, day: date) -> bool:
        """Whether `day` is one of its days."""
        return self.first <= day <= self.last


def parse_day(text: str, field: str) -> date:
    """The day that `2026-11-30` names. Raises InvalidArgument with what is allowed."""
    cleaned = text.strip()
    try:
        if _DAY.fullmatch(cleaned):
            return date.fromisoformat(cleaned)
    except ValueError:
        raise InvalidArgument(f"{field}: there is no day {cleaned}", field=field) from None
    raise InvalidArgument(f"{field} must be a day such as 2026-11-30, not {text[:40]!r}", field=field)


def parse_period(text: str, field: str) -> Period:
    """The period that `2026-W49`, `2026-11`, `2026-Q4` or `2026` names. Raises InvalidArgument."""
    match = _PERIOD.fullmatch(text.strip().upper())
    try:
        if match:
            year, week, quarter, month = (int(part or 0) for part in match.groups())
            if week or match.group(2):
                return period_of("week", date.fromisocalendar(year, week, 1))
            if quarter:
                return period_of("quarter", date(year, 3 * quarter, 1))
            if match.group(4):
                return period_of("month", date(year, month, 1))
            return period_of("year", date(year, 1, 1))
    except (ValueError, OverflowError):
        raise InvalidArgument(f"{field}: there is no period {text.strip()[:40]}", field=field) from None
    raise InvalidArgument(
        f"{field} must be a period such as 2026-W49, 2026-11, 2026-Q4 or 2026, not {text[:40]!r}", field=field
    )


def period_of(kind: str, day: date) -> Period:
    """The week (ISO, from Monday), month, quarter or year that holds `day`. Raises InvalidArgument."""
    if kind == "week":
        year, week, weekday = day.isocalendar()
        first = day - timedelta(days=weekday - 1)
        return Period(f"{year:04}-W{week:02}", kind, first, first + timedelta(days=6))
    months = {"month": 1, "quarter": 3, "year": 12}.get(kind)
    if months is None:
        raise InvalidArgument(f"period must be one of {', '.join(FOLDERS)}", field="period")
    first = date(day.year, (day.month - 1) // months * months + 1, 1)
    end_month = first.month + months - 1
    last = date(day.year, end_month, monthrange(day.year, end_month)[1])
    names = {"month": f"-{day.month:02}", "quarter": f"-Q{(day.month + 2) // 3}", "year": ""}
    return Period(f"{day.year:04}{names[kind]}", kind, first, last)
