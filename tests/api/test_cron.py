"""Cron schedules: when they are due, as robfig/cron v3.0.1 answers; zones by name."""

import pytest

from steersman.api import cron, zones

DUE = [
    # (schedule, zone, after, the next four times), recorded from robfig/cron; zones and dates where clocks change
    ("*/5 * * * *", "UTC", 1767225600, "1767225900 1767226200 1767226500 1767226800"),
    ("30 2 * * *", "Europe/Berlin", 1774566000, "1774575000 1774661400 1774830600 1774917000"),
    ("30 2 * * *", "Europe/Berlin", 1792893600, "1792978200 1793064600 1793151000 1793237400"),
    ("30 1 * * *", "America/New_York", 1793491200, "1793511000 1793514600 1793601000 1793687400"),
    ("0 0 31 * *", "UTC", 1767225600, "1769817600 1774915200 1780185600 1785456000"),
    ("59 23 31 2 *", "UTC", 1767225600, ""),
    ("0 12 13 * 5", "UTC", 1767225600, "1767355200 1767960000 1768305600 1768564800"),
    ("0 12 */2 * 1-5", "Europe/London", 1767225600, "1767268800 1767355200 1767441600 1767614400"),
    ("15,45 9-17/4 * jan,JUL mon", "Asia/Kathmandu", 1767225600, "1767583800 1767585600 1767598200 1767600000"),
    ("0 */1 * * *", "Australia/Lord_Howe", 1775310000, "1775311200 1775316600 1775320200 1775323800"),
    ("@weekly", "America/New_York", 1793491200, "1793505600 1794114000 1794718800 1795323600"),
    ("@every 1h30m", "UTC", 1767225601, "1767231001 1767236401 1767241801 1767247201"),
    ("0 3 29 2 ?", "UTC", 1767225600, "1835406000 1961636400 2087866800 2214097200"),
]


@pytest.mark.parametrize(("text", "zone", "after", "expected"), DUE)
def test_when_a_schedule_is_due(text, zone, after, expected):
    assert cron.problems(text) == []
    found, place = [], zones.zone(zone)
    while len(found) < 4 and (after := cron.parse(text).next(after, place)) is not None:
        found.append(after)
    assert found == [int(number) for number in expected.split()]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Europe/Berlin", ""),
        ("Etc/GMT+5", ""),
        ("UTC", ""),
        ("", "timeZone must be nil or non-empty string"),
        ("Local", "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"),
        ("Mars/Base", "unknown time zone Mars/Base"),
        ("../../etc/passwd", "unknown time zone ../../etc/passwd"),
        ("Europe", "unknown time zone Europe"),
        ("tzdata.zi", "unknown time zone tzdata.zi"),
        ("zone1970", "unknown time zone zone1970"),
    ],
)
def test_names_of_zones(name, words):
    assert zones.problem(name) == words


def test_local_texts():
    assert zones.local_text(zones.zone(""), 1_767_225_600) == "2026-01-01T00:00:00Z"
    assert zones.local_text(zones.zone("Europe/Berlin"), 1_767_225_600) == "2026-01-01T01:00:00+01:00"
