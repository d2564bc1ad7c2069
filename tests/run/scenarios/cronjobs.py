"""CronJobs: a start is due at once where the last one was years ago, whatever the clock says."""

from __future__ import annotations

from typing import Any, Final

from tests.run.scenarios.making import LONG_AGO, Step, create, delete, ends, made, patch, status, together

CRON: Final = "batch/v1/CronJob"


def cronjob(exit_code: str = "0", lifetime: str = "0", **spec: Any) -> dict[str, Any]:
    """One that starts nothing yet."""
    inner = {"metadata": {"labels": {"job": "label"}, "annotations": {"job": "note"}}}
    template = {**inner, "spec": {"backoffLimit": 0, "template": ends(exit_code, lifetime)}}
    return made(CRON, schedule="0 0 1 1 *", suspend=True, jobTemplate=template, **spec)


def start(month: int, **spec: Any) -> Step:
    """The start of the first day of a month becomes due."""
    return together(
        patch(CRON, {"spec": {"suspend": True, "schedule": f"0 0 1 {month} *", **spec}}),
        status(CRON, {"lastScheduleTime": LONG_AGO}),
        patch(CRON, {"spec": {"suspend": False}}),
    )


def drop_one(c: Any) -> None:
    """Somebody deletes the Job that is listed first."""
    c.delete(c.list("batch/v1/Job", "default")[0], propagation="Background")


SCENARIOS: Final[dict[str, tuple[Step, ...]]] = {
    "cronjob-policies": (
        create(cronjob(lifetime="600")),
        start(1),
        start(2, concurrencyPolicy="Forbid"),
        start(3, concurrencyPolicy="Replace"),
        start(4, concurrencyPolicy="Allow"),
        together(patch(CRON, {"spec": {"suspend": True}}), drop_one),
        delete(CRON, "Background"),
    ),
    "cronjob-history": (
        create(cronjob(successfulJobsHistoryLimit=1)),
        start(1),
        start(2),
        start(3),
    ),
    "cronjob-failures": (
        create(cronjob("3", failedJobsHistoryLimit=1)),
        start(1),
        start(2, timeZone="Europe/Berlin"),
    ),
    "cronjob-late": (
        create(cronjob(lifetime="600", startingDeadlineSeconds=10)),
        start(1),
        start(2, startingDeadlineSeconds=None),
        together(
            patch(CRON, {"spec": {"suspend": True, "schedule": "0 0 * * *", "concurrencyPolicy": "Replace"}}),
            status(CRON, {"lastScheduleTime": LONG_AGO}),
            patch(CRON, {"spec": {"suspend": False}}),
        ),
    ),
}
