"""What the service counts of itself, in the format of Prometheus: `GET /metrics`."""

from __future__ import annotations

from functools import partial

from radabound_fast._extras import needs

with needs("serve"):
    from prometheus_client import (
        CONTENT_TYPE_LATEST,
        CollectorRegistry,
        Counter,
        Gauge,
        Histogram,
        generate_latest,
    )

MEDIA_TYPE = CONTENT_TYPE_LATEST
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0)  # seconds


class Counts:
    """Counts of one service, from its start on."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        count, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        self._answers = gauge("radabound_answers", "Answers that the guard has released in all.")
        self._halted = gauge("radabound_halted", "Whether the holdout is spent.")
        self._calls = count(
            "radabound_calls", "Calls of query and query_many.", labelnames=["team", "outcome"]
        )
        self._responses = count(
            "radabound_responses", "Responses, by status.", labelnames=["status"]
        )
        self._commits = count("radabound_commits", "Transactions; a call waits for one.")
        self._commit_seconds = count(
            "radabound_commit_seconds", "Time in transactions, the guard's work included."
        )
        self._call_seconds = Histogram(
            "radabound_call_seconds", "From the first octet of a body to the reply.",
            registry=registry, buckets=_BUCKETS,
        )  # fmt: skip

    def call(self, team: str, outcome: str, seconds: float) -> None:
        """Count a call of `query` or `query_many`."""
        self._calls.labels(team, outcome).inc()
        self._call_seconds.observe(seconds)

    def response(self, status: int) -> None:
        """Count a response."""
        self._responses.labels(status).inc()

    def commit(self, seconds: float) -> None:
        """Count a transaction."""
        self._commits.inc()
        self._commit_seconds.inc(seconds)

    def text(self, n_answers: int, halted: bool) -> bytes:
        """All of it, with what the guard says of itself, as Prometheus reads it."""
        self._answers.set(n_answers)
        self._halted.set(halted)
        return generate_latest(self._registry)
