"""HTTP: authentication, limits on bodies, JSON."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import math
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from radabound_fast import __version__
from radabound_fast._checks import counted
from radabound_fast._extras import needs
from radabound_fast.guards.base import Guard
from radabound_fast.service import contract, limits, state
from radabound_fast.service.answering import Answering, Call
from radabound_fast.service.counts import MEDIA_TYPE, Counts
from radabound_fast.service.limits import AtOnce
from radabound_fast.service.page import page, page_content
from radabound_fast.service.replies import (
    UNAVAILABLE,
    Refusal,
    Reply,
    error_reply,
    failed_call,
    internal_error,
    logger,
    unavailable,
)
from radabound_fast.service.reports import Reports
from radabound_fast.service.tokens import Team, Tokens
from radabound_fast.service.turns import SERVICE, Lane
from radabound_fast.store.served import Log

with needs("serve"):
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route

_T = TypeVar("_T")

MAX_BODY = 2**24  # octets
# a verdict leaves at a multiple of so many seconds after its call came: its time tells no count
_VERDICT_SECONDS = 0.25
_JSON = "application/json"
_ENDING = (
    "the service is ending: whether this was counted shows when it is sent again under its "
    "Idempotency-Key"
)
# what a call costs beside the octets of its body, in octets
_FIXED_OCTETS = 1000
# a refused request is logged in a line, and of many in a second so many: anybody can make them
_LINES_A_SECOND = 10
# a check whether the disk takes what is written waits for it; its result is kept so long
_READY_SECONDS = 1.0
# a check whether the database answers: how long it is waited for, and how long the work that is
# before it may take
_CHECK_SECONDS, _PATIENCE_SECONDS = 0.1, 30.0
# between two looks whether the file of tokens has changed
_TOKENS_SECONDS = 1.0
# a page may show itself and do nothing else
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


def _refusal(status: int, kind: str, message: str, **headers: str) -> Refusal:
    return Refusal(error_reply(status, kind, message, "refused"), **headers)


class Service:
    """The application of a guard on labels, opened from a database, which it closes at its end.

    A body has at most `max_body` octets.
    """

    def __init__(self, guard: Guard, tokens: Tokens, *, max_body: int = MAX_BODY) -> None:
        self._counts = Counts()
        self._answering = Answering(guard, self._counts.commit)
        self._take_tokens(tokens)
        self._guard_lane, self._report_lane = Lane(self._answering.answer), Lane()
        self._reports: Reports | None = None
        if guard.needs == "key":
            self._reports = Reports(self._answering.guard, self._answering.read)
        self._max_body = max_body
        self._at_once = AtOnce(limits.BODIES * max_body)
        self._refusals = RefusalLog()
        self._check: asyncio.Task[bool] | None = None  # the last one of the database
        self._writing: asyncio.Task[bool] | None = None  # the last check of the disk
        self._written_at = -math.inf
        post = ["POST"]
        self.app = Starlette(
            routes=[
                Route("/query", self._endpoint(partial(self._query, many=False)), methods=post),
                Route("/query_many", self._endpoint(partial(self._query, many=True)), methods=post),
                Route("/state", self._endpoint(self._state)),
                Route("/report", self._endpoint(self._report)),
                Route("/end", self._endpoint(self._end), methods=post),
                Route("/", self._endpoint(self._page)),
                Route("/metrics", self._endpoint(self._metrics)),
                Route("/health", self._health),
                Route("/ready", self._ready),
                Route("/openapi.json", self._openapi),
            ],
            exception_handlers={404: self._not_found, 405: self._not_found},
            lifespan=self._lifespan,
        )
        # a redirect would send a client, and its token, where the Host header says
        self.app.router.redirect_slashes = False

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        loop, thread = asyncio.get_running_loop(), threading.current_thread()
        hears = thread is threading.main_thread() and hasattr(signal, "SIGHUP")
        if hears:
            loop.add_signal_handler(signal.SIGHUP, self._read_tokens)
        watching = loop.create_task(self._watch_tokens())
        yield
        watching.cancel()
        if hears:
            loop.remove_signal_handler(signal.SIGHUP)
        for lane in (self._guard_lane, self._report_lane):
            await lane.end()
        self._answering.close()

    # ---- tokens --------------------------------------------------------------------------------

    def _take_tokens(self, tokens: Tokens) -> None:
        """Take over who may ask, and limits; ValueError if they do not fit the guard."""
        tokens.check_fits(self._answering.guard)
        self._tokens, self._answering.together = tokens, tokens.together

    def _read_tokens(self) -> None:
        """Read the file again; what is malformed changes nothing, and is logged."""
        shared = self._tokens.warning_of_keys()
        try:
            self._take_tokens(self._tokens.read_again())
        except (OSError, ValueError) as error:
            logger.error("tokens stay as they were: %s", error)
        else:
            logger.info("tokens were read again: %s", counted(len(self._tokens.teams), "name"))
            now = self._tokens.warning_of_keys()
            if self._answering.guard.needs == "key" and now != shared:
                logger.warning("%s", now)

    async def _watch_tokens(self) -> None:
        while True:
            await asyncio.sleep(_TOKENS_SECONDS)
            if self._tokens.has_changed():
                self._read_tokens()

    # ---- every endpoint ------------------------------------------------------------------------

    def _endpoint(
        self, work: Callable[[Request, Team], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            team = None
            try:
                team = self._team(request)
                with self._at_once.call(team):
                    response = await work(request, team)
            except Refusal as refusal:
                response = _response(refusal.reply)
                response.headers.update(refusal.headers)
            except asyncio.CancelledError:  # uvicorn waits no longer
                response = _response(error_reply(503, "RuntimeError", _ENDING, "failed"))
            except Exception as error:
                response = _response(internal_error(error))
            self._counts.response(response.status_code)
            self._refusals.add(request, response.status_code, team)
            return response

        return endpoint

    def _team(self, request: Request) -> Team:
        """Authenticate the team; Refusal without a token of the file."""
        kind, _, credentials = request.headers.get("authorization", "").partition(" ")
        team = None
        if kind.lower() == "bearer":
            team = self._tokens.team_of(credentials.strip().encode())
        # from browsers, which would send it with another site's POST as well
        elif kind.lower() == "basic" and request.method in ("GET", "HEAD"):
            with contextlib.suppress(ValueError):  # no base64
                name, _, token = base64.b64decode(credentials, validate=True).partition(b":")
                team = self._tokens.team_of(token)
                if team is not None and team.name.encode() != name:
                    team = None
        if team is None:
            # not request.url, which reads the Host header
            scheme = "Basic" if request.scope["path"] == "/" else "Bearer"
            reason = "a token of the service must come as Authorization: Bearer"
            if kind:
                reason = f"no team has the token that came with Authorization; {reason}"
            raise _refusal(
                401, "PermissionError", reason, www_authenticate=f'{scheme} realm="radabound"'
            )
        return team

    @contextlib.asynccontextmanager
    async def _body(self, request: Request, team: Team) -> AsyncIterator[bytes]:
        """Read the body, and count it as held; Refusal if it is compressed, or too large."""
        coding = request.headers.get("content-encoding", "identity").strip().lower()
        if coding != "identity":
            reason = f"a body must come as it is, got Content-Encoding: {coding:.40}"
            raise _refusal(415, "ValueError", f"{reason}; packed rows (form bits) are small")
        header = request.headers.get("content-length", "0")
        length = int(header) if header.isascii() and header.isdecimal() and len(header) < 20 else 0
        if length > self._max_body:
            raise self._too_large()
        parts: list[bytes] = []
        n_held = 0
        try:
            try:
                async for part in request.stream():
                    self._at_once.hold(team, len(part))
                    n_held += len(part)
                    if n_held > self._max_body:
                        raise self._too_large()
                    parts.append(part)
            except ClientDisconnect:
                raise _refusal(400, "ConnectionError", "the client went away") from None
            except asyncio.CancelledError:  # uvicorn waits no longer
                reason = "nothing was counted: the service is ending"
                raise _refusal(503, "RuntimeError", reason) from None
            yield b"".join(parts)
        finally:
            self._at_once.let_go(team, n_held)

    def _too_large(self) -> Refusal:
        # the rest is read and dropped: a client that sends all of it first gets this reply too
        return limits.too_large("octets_a_call", "octets of a body", self._max_body)

    async def _query(self, request: Request, team: Team, *, many: bool) -> Response:
        began = time.perf_counter()
        idempotency = request.headers.get("idempotency-key")
        if idempotency is not None and not 1 <= len(idempotency) <= 200:
            raise _refusal(400, "ValueError", "an Idempotency-Key must have 1 to 200 characters")
        async with self._body(request, team) as body:
            call = Call(team, body, many, idempotency)
            await self._guard_lane.do(team.name, call, _FIXED_OCTETS + len(body))
        if self._answering.guard.tells == "verdicts":
            await asyncio.sleep(_VERDICT_SECONDS - (time.perf_counter() - began) % _VERDICT_SECONDS)
        assert call.reply is not None
        self._counts.call(team.name, call.reply.outcome, time.perf_counter() - began)
        return _response(call.reply)

    # ---- state -----------------------------------------------------------------------------------

    @staticmethod
    async def _do(lane: Lane, team: str, work: Callable[[], _T]) -> _T:
        """Result of `work` when it is the team's turn; Refusal if it fails."""
        try:
            result: _T = await lane.do(team, work)
        except UNAVAILABLE as error:
            raise Refusal(unavailable(error)) from None
        except (TypeError, ValueError) as error:
            raise Refusal(failed_call(error)) from None
        return result

    async def _read(self, team: str, work: Callable[[Log], _T]) -> _T:
        """Result of `work` between two transactions; Refusal if it fails."""
        return await self._do(self._guard_lane, team, partial(self._answering.read, work))

    async def _state(self, _: Request, team: Team) -> Response:
        read = partial(state.team_state, self._answering.guard, team)
        fields = await self._read(team.name, read)
        allowed = {"max_body": self._max_body, "max_rows": limits.MOST_ROWS}
        return _json(fields | {"version": __version__} | allowed)

    async def _report(self, _: Request, team: Team) -> Response:
        guard = self._answering.guard
        if guard.of_teams:  # everybody may see it
            report = await self._do(self._guard_lane, team.name, guard.report)
            return await self._report_reply(team, report)
        if self._reports is None:
            reason = f"only a DeclaredSearch has a report, this guard is a {guard.kind}"
            raise _refusal(400, "TypeError", reason)
        while await self._do(self._report_lane, team.name, partial(self._reports.step, team)):
            pass
        reply = partial(self._reports.reply, team)
        return Response(await self._do(self._report_lane, team.name, reply), media_type=_JSON)

    async def _report_reply(self, team: Team, report: Any) -> Response:
        make = partial(state.report_fields, report)
        return _json(await self._report_lane.do(team.name, make))

    async def _end(self, _: Request, team: Team) -> Response:
        if not team.is_owner or not self._answering.guard.of_teams:
            raise _refusal(403, "PermissionError", "the owner ends a competition, and nobody else")
        report = await self._do(self._guard_lane, team.name, self._answering.end)
        return await self._report_reply(team, report)

    async def _page(self, _: Request, team: Team) -> Response:
        read = partial(page_content, self._answering.guard, team)
        content = await self._read(team.name, read)
        return Response(
            await self._report_lane.do(team.name, partial(page, content)),
            media_type="text/html",
            headers={
                "content-security-policy": _POLICY,
                "cache-control": "no-store",
                "referrer-policy": "no-referrer",
                "x-content-type-options": "nosniff",
            },
        )

    async def _metrics(self, _: Request, team: Team) -> Response:
        if not team.is_owner:
            raise _refusal(403, "PermissionError", "the metrics are for the owner")
        text = self._counts.text(*await self._read(team.name, self._progress))
        return Response(text, headers={"content-type": MEDIA_TYPE})

    # ---- without a token -------------------------------------------------------------------------

    async def _health(self, _: Request) -> Response:
        """Whether the database answers, or is at work: one check at a time, whoever asks."""
        if self._check is None or self._check.done():
            self._check = asyncio.create_task(self._database_answers())
        await asyncio.wait({self._check}, timeout=_CHECK_SECONDS)
        is_busy = not self._check.done() and self._guard_lane.busy_seconds < _PATIENCE_SECONDS
        if is_busy or self._check.done() and self._check.result():
            return _json({"status": "ok"})
        reason = "the database does not answer"
        return _response(error_reply(503, "RuntimeError", reason, "failed"))

    async def _ready(self, request: Request) -> Response:
        """Whether a call could be counted now: the database answers, and the disk takes more."""
        response = await self._health(request)
        if response.status_code != 200:
            return response
        if time.monotonic() - self._written_at > _READY_SECONDS:
            self._written_at = time.monotonic()
            self._writing = asyncio.create_task(asyncio.to_thread(self._answering.can_write))
        assert self._writing is not None
        if not await asyncio.shield(self._writing):
            reason = "nothing can be written beside the database"
            return _response(error_reply(503, "OSError", reason, "failed"))
        return _json({"status": "ready"})

    async def _database_answers(self) -> bool:
        with contextlib.suppress(Refusal):
            await self._read(SERVICE, self._progress)
            return True
        return False

    def _progress(self, log: Log) -> tuple[int, bool]:
        """Number of answers and the halt, after a read of guard and log."""
        log.n_answers("", 0)
        return self._answering.guard.n_answered, self._answering.guard.halted

    async def _openapi(self, _: Request) -> Response:
        return _json(contract.OPENAPI)

    async def _not_found(self, request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        what = f"{request.method} {request.scope['path'][:100]}"
        self._refusals.add(request, status, None)
        return _response(error_reply(status, "LookupError", f"there is no {what}", "refused"))


class RefusalLog:
    """Lines in the log for requests that were refused: from where, by whom, and why."""

    def __init__(self) -> None:
        self._second, self._n_refused = 0, 0

    def add(self, request: Request, status: int, team: Team | None) -> None:
        """Log a request whose status is that of a refusal."""
        if not 400 <= status < 500 or status == 410:  # the halt has a line of its own
            return
        second = int(time.time())
        if second != self._second:
            if self._n_refused > _LINES_A_SECOND:
                n_more = self._n_refused - _LINES_A_SECOND
                logger.warning("%d more were refused, in one second", n_more)
            self._second, self._n_refused = second, 0
        self._n_refused += 1
        if self._n_refused > _LINES_A_SECOND:
            return
        address = "unknown" if request.client is None else request.client.host
        who = "no team" if team is None else team.name
        # as reprs: nothing that comes from outside makes a line of its own
        what = f"{request.method:.10} {request.scope['path'][:100]}"
        logger.warning("refused with %d: %r from %r, %s", status, what, address[:60], who)


def _response(reply: Reply) -> Response:
    headers = None if reply.retry_after is None else {"retry-after": str(reply.retry_after)}
    return Response(reply.body, reply.status, headers, _JSON)


def _json(content: dict[str, Any]) -> Response:
    return Response(json.dumps(content), media_type=_JSON)
