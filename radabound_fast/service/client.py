"""Client of `radabound serve`: a guard whose labels are in another process."""

from __future__ import annotations

import contextlib
import http.client
import io
import ipaddress
import json
import logging
import math
import os
import random
import re
import socket
import ssl
import time
import uuid
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import length_hint
from typing import Any, ClassVar, Literal, Self, TypeVar, cast
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_positive
from radabound_fast._kernels.rows import pack_rows
from radabound_fast._ownership import SetOnce
from radabound_fast.guards.answers import Answers, HoldoutExhausted, MeanAnswer
from radabound_fast.rows.labels import Labels
from radabound_fast.rows.named import by_class, check_class
from radabound_fast.rows.packing import as_array
from radabound_fast.service.wire import (
    GAINS,
    MEDIA_TYPE,
    SCORES,
    VISIBLE_ASCII,
    answers_in,
    code_dtype,
    pack_body,
)

_T = TypeVar("_T")
_Read = Callable[[dict[str, Any]], _T]  # makes something of the fields of a reply

# nothing listens there, or there is no such host
_NOBODY = (ConnectionRefusedError, socket.gaierror)
# statuses after which a call is sent again: service or proxy were not available
_RETRIED = (502, 503, 504)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
# a first call ends after so long where nothing listens; a service that was there may be restarting
_NOBODY_SECONDS = 5.0
# a call that waits longer says so in the log
_QUIET_SECONDS = 0.5
_SECONDS = re.compile("[0-9]{1,9}")
_ERRORS: dict[str, type[Exception]] = {
    "TypeError": TypeError,
    "ValueError": ValueError,
    "PermissionError": PermissionError,
    "LookupError": LookupError,
}


logger = logging.getLogger("radabound_fast.service")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RemoteAnswer(MeanAnswer):
    """One answer of a `RemoteGuard`, with the fields of `Answer`; nan where the guard has none.

    Its ``number`` is counted over all teams.
    """


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RemoteSearchAnswer(RemoteAnswer):
    """A `RemoteAnswer` of a `DeclaredSearch`: ``key`` is the model, ``rerun`` which run of it."""

    key: Any
    rerun: int


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RemoteComparedAnswer(RemoteSearchAnswer):
    """A `RemoteSearchAnswer` with the gain over a baseline, as `DeclaredSearchAnswer` has it."""

    gain: float
    gain_low: float
    gain_high: float


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RemoteVerdict(RemoteAnswer):
    """The verdict of a `Gate`, as `Verdict` has it; all but `number` of a `RemoteAnswer` is nan.

    The exception is `value`, if the gate releases rounded values.
    """

    passed: bool
    verdict: str
    n_passes: int
    compared_with: int | None


class RemoteReport:
    """Report of a `DeclaredSearch` or a competition behind a service; see `Report`.

    ``str(report)`` is the sentence to paste; a notebook shows the picture and the ten best models.

    Attributes
    ----------
    metric, n_samples, n_models, space_size, delta, baseline, guarantee
        Attributes of `Report`.
    best : dict
        The best answer, by name.
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        self._html = str(fields.pop("html"))
        self._ranking: list[dict[str, Any]] = fields.pop("ranking")
        self._fields = fields
        self.metric: str = fields["metric"]
        self.n_samples: int = fields.get("n_samples") or fields["n_confirmation_rows"]
        self.n_models: int = fields["n_models"]
        self.space_size: int | None = fields.get("space_size")
        self.delta: float = fields["delta"]
        self.baseline: float | None = fields.get("baseline")
        self.guarantee: str = fields["guarantee"]
        self.best: dict[str, Any] = fields["best"]

    def ranking(self, n: int | None = None) -> list[dict[str, Any]]:
        """The n best answers as dicts, the best first; the service sends ten at most."""
        return self._ranking[:n]

    def to_json(self) -> str:
        """Report as JSON; see `Report.to_json`, without "answers"."""
        return json.dumps(self._fields, indent=2)

    def to_html(self) -> str:
        """Report as a page; see `Report.to_html`."""
        from radabound_fast.guards.report import page

        return page(f"{self.metric} of {self.n_models:,} models", self._html)

    def to_markdown(self) -> str:
        """Sentence and guarantee of the report, for a model card."""
        return f"{self}\n\n{self.guarantee}\n"

    def __str__(self) -> str:
        return str(self._fields["sentence"])

    def _repr_html_(self) -> str:
        return self._html


@dataclass(frozen=True, slots=True)
class RemoteHoldout:
    """Attributes of a `Holdout` that the service shows; the labels stay with it."""

    n_samples: int
    metric: str
    takes: str
    greater_is_better: bool
    classes: list[Any] | None
    pos_label: Any
    labels: ClassVar[None] = None


class RemoteGuard(SetOnce):
    """A guard that another process serves (`radabound serve`), queried over HTTP.

    The integrations take it in the place of a guard, and threads may share it.  It has no labels
    and may be copied, pickled and sent to workers: the service counts their queries.

    Parameters
    ----------
    url : str
        Address of the service, ``https://host:port``; http is for one machine, or behind a
        tunnel, and elsewhere a UserWarning.  Proxies of the environment are not used, redirects
        not followed.
    token : str
        Token of the team.  A copy and a pickle contain it, repr and errors do not.
    timeout : float, default 300
        How many seconds a call may take in all, with its retries; only a reply that trickles in,
        and never stops for so long, may take more.
    cafile : path, optional
        Certificates to trust, in PEM; None: the system's.

    Raises
    ------
    PermissionError
        The service does not know the token.
    OSError
        It cannot be reached within `timeout`; where nothing listens, within 5 seconds.
    TypeError, ValueError
        The url or the token is malformed, or another service is at this url.

    Attributes
    ----------
    holdout : RemoteHoldout
    n_samples : int
        Held-out rows, m.
    kind, needs, allow_reruns, parameters, guarantee
        Attributes of the guard.

    Notes
    -----
    A call that got no reply is sent again under its idempotency key, and counted once, whatever
    happens to the connection or the service.  It waits, and logs that, while a service or a proxy
    is not available, or has too many calls of the team at once, and says to come again within
    `timeout`.  Errors are those of the guard.  Of limits of the service, a RuntimeError says that
    the team has no answers left today, a PermissionError that queries have ended or that a key is
    another team's, a ValueError that a call is too large.
    """

    _set_once = frozenset(
        {"holdout", "n_samples", "kind", "needs", "allow_reruns", "parameters", "guarantee"}
    )

    def __init__(
        self,
        url: str,
        *,
        token: str,
        timeout: float = 300.0,
        cafile: str | os.PathLike[str] | None = None,
    ) -> None:
        if not isinstance(url, str):
            raise TypeError(f"url must be a string, got {type(url).__name__}")
        parts, port = urlsplit(url), None
        if "@" in parts.netloc:  # not what it is: it has a password
            raise ValueError("url must have no name and no password in it: give the token")
        is_https = parts.scheme == "https"
        plain = parts.scheme in ("http", "https") and not (parts.query or parts.fragment)
        with contextlib.suppress(ValueError):  # no number, or too large
            # http.client would take the end of an address of IPv6 for one that is not there
            port = (443 if is_https else 80) if parts.port is None else parts.port
        if not plain or not parts.hostname or not port or not VISIBLE_ASCII.fullmatch(url):
            raise ValueError(f"url must be http://host:port or https://host:port, got {url!r}")
        if not isinstance(token, str):
            raise TypeError(f"token must be a string, got {type(token).__name__}")
        if not VISIBLE_ASCII.fullmatch(token):
            raise ValueError("token must be visible characters of ASCII, and no end of a line")
        if not is_https and not _is_loopback(parts.hostname):
            warnings.warn(
                f"{parts.hostname} gets the token and predictions in clear: take https, or a "
                "tunnel",
                stacklevel=2,
            )
        self._url, self._token, self._cafile = url, token, cafile
        self._path = parts.path.rstrip("/")
        self._timeout = check_positive(timeout=timeout)
        self._connect: Callable[..., http.client.HTTPConnection]
        self._connect = partial(http.client.HTTPConnection, parts.hostname, port)
        if is_https:
            tls = ssl.create_default_context(cafile=cafile)
            https = http.client.HTTPSConnection
            self._connect = partial(https, parts.hostname, port, context=tls)
        # unused connections, of one process
        self._idle: list[http.client.HTTPConnection] = []
        self._process = os.getpid()
        weakref.finalize(self, _close_all, self._idle)
        self._was_reached = False
        self._get("/state", self._set_state)

    def _set_state(self, state: dict[str, Any]) -> None:
        facts = {name: state[name] for name in RemoteHoldout.__match_args__}
        self.holdout = holdout = RemoteHoldout(**facts)
        self.n_samples = holdout.n_samples
        self.kind, self.guarantee = str(state["guard"]), str(state["guarantee"])
        self.needs: Literal["key", "guess"] | None = state["needs"]
        self.parameters = dict(state["parameters"])
        self.allow_reruns = bool(self.parameters.get("allow_reruns", False))
        self._halted, self._max_body = bool(state["halted"]), int(state["max_body"])
        self._max_rows = int(state["max_rows"])
        self._labels = None
        if holdout.classes is not None and holdout.takes == "classes":
            # not the holdout's: the first class everywhere, from which predictions differ
            self._labels = Labels(holdout.classes[:1] * holdout.n_samples, holdout.classes)

    def __reduce__(self) -> Any:
        token, timeout, cafile = self._token, self._timeout, self._cafile
        return partial(RemoteGuard, self._url, token=token, timeout=timeout, cafile=cafile), ()

    def __sklearn_clone__(self) -> Self:
        """This very object: scikit-learn's ``clone`` treats any guard so."""
        return self

    # ---- state of the service ------------------------------------------------------------------

    @property
    def halted(self) -> bool:
        """Whether an answer has been withheld from any team; it never turns False again."""
        if not self._halted:
            self._halted = self._get("/state", lambda state: bool(state["halted"]))
        return self._halted

    @property
    def can_answer(self) -> bool:
        """Whether some query might be answered: False once halted, or where nothing ever is."""
        return self._get("/state", lambda state: bool(state["can_answer"]))

    @property
    def n_answered(self) -> int:
        """Answers released so far, to all teams."""
        return self._get("/state", lambda state: int(state["n_answered"]))

    def n_left(self) -> int | None:
        """Return how many queries more will be answered for certain; None: there is no end.

        This is as far as the answers reveal it: 0 where it depends on the complexity.
        """
        return self._get("/state", lambda state: cast("int | None", state["n_left"]))

    def what_would_answer(self, guess: float | None = None) -> str:
        """Return "": the service does not say what to change."""
        return ""

    # ---- queries -------------------------------------------------------------------------------

    def query(
        self,
        y_pred: Any,
        *,
        guess: float | None = None,
        key: Any = None,
        rerun: int | Literal["next"] | None = None,
        finalist: str | None = None,
    ) -> RemoteAnswer:
        """Query one model, for a `RemoteAnswer`; see the guard's `query`.

        Parameters
        ----------
        y_pred, guess, key, rerun
            Arguments of the guard's `query`.
        finalist : str, optional
            In a competition: name these predictions as a finalist of the team, which is confirmed
            at the end; they replace an earlier one of this name.

        Raises
        ------
        HoldoutExhausted, TypeError, ValueError
            As the guard's `query` does.
        RuntimeError
            The team has no answers left today.
        PermissionError
            The token is not known, queries have ended, or the key is another team's.
        OSError
            The service could not be reached within `timeout`: **whether the query was counted is
            not known then**.
        """
        arguments = {"guess": guess, "key": key, "rerun": rerun, "finalist": finalist}
        return self._send_query("/query", y_pred, 1, _answer, **arguments)

    def query_many(
        self, Y_pred: Any, *, guesses: Any = None, keys: Any = None, reruns: Any = None
    ) -> Answers[RemoteAnswer]:
        """Query many models in one commit, or none; see the guard's `query_many`.

        `Y_pred`, `guesses`, `keys`, `reruns` and what is returned are as there.  Errors are those
        of `query`; ValueError as well if these are more rows, or octets, than the service takes at
        once.
        """
        arguments = {"guesses": guesses, "keys": keys, "reruns": reruns}
        for name, values in arguments.items():
            if values is not None:
                if not np.iterable(values):
                    raise TypeError(f"{name} must be a sequence, one a row, got {values!r:.50}")
                arguments[name] = list(values)
        answers = self._send_query("/query_many", Y_pred, 2, _answers, **arguments)
        self._halted = self._halted or answers.halted
        return answers

    def report(self) -> RemoteReport:
        """Report on this team's answers of a `DeclaredSearch`, or on all for the owner.

        Of a competition the report on all finalists, for everybody, once it has ended.  TypeError
        with another guard, ValueError before the first answer.
        """
        return self._get("/report", RemoteReport)

    def end(self) -> RemoteReport:
        """Confirm the finalists of a competition, as its owner, and return the report.

        PermissionError without the owner's token or a competition, ValueError without a finalist.
        """
        return self._call("POST", "/end", b"", RemoteReport)

    def close(self) -> None:
        """Close the connections; the next call opens a new one."""
        _close_all(self._idle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        # not the token
        return f"RemoteGuard({self._url!r}, n_samples={self.n_samples}, kind={self.kind!r})"

    # ---- predictions as octets -------------------------------------------------------------------

    def _send_query(
        self, path: str, y_pred: Any, ndim: int, read: _Read[_T], **arguments: Any
    ) -> _T:
        if ndim == 2 and (n_rows := length_hint(y_pred)) > self._max_rows:
            raise ValueError(
                f"rows must be at most {self._max_rows:,} a call, got {n_rows:,}: ask about fewer "
                "rows at once"
            )
        form, octets = self._encoded(y_pred, ndim)
        head = {"form": form} | {name: one for name, one in arguments.items() if one is not None}
        body = pack_body(head, octets)
        if len(body) > self._max_body:
            raise ValueError(
                f"a body must have at most {self._max_body:,} octets, got {len(body):,}: ask "
                "about fewer rows at once"
            )
        return self._call("POST", path, body, read)

    def _encoded(self, y_pred: Any, ndim: int) -> tuple[str, bytes]:
        """Form and octets of predictions, as `wire` has them."""
        if self._labels is None:
            return "npy", _npy(self._by_class(y_pred, ndim))
        if len(self._labels.classes) == 2:
            words = pack_rows(*self._labels.match(y_pred, ndim))
            octets = np.atleast_2d(words).astype("<u8", copy=False).view(np.uint8)
            return "bits", octets[:, : -(-self.n_samples // 8)].tobytes()
        codes = self._labels.codes_of(y_pred, ndim)
        return "codes", codes.astype(code_dtype(len(self._labels.classes)), copy=False).tobytes()

    def _by_class(self, y_pred: Any, ndim: int) -> NDArray[Any]:
        """Scores, numbers and probabilities, whose names the service does not see."""
        classes, pos_label = self.holdout.classes, self.holdout.pos_label
        if classes is not None:
            y_pred = by_class(y_pred, classes, "y_pred", ndim)
            if pos_label is not None:
                check_class(y_pred, classes, classes.index(pos_label), "y_pred")
        return as_array(y_pred, "y_pred")

    # ---- HTTP ------------------------------------------------------------------------------------

    def _get(self, path: str, read: _Read[_T]) -> _T:
        return self._call("GET", path, None, read)

    def _call(self, method: str, path: str, body: bytes | None, read: _Read[_T]) -> _T:
        """Send a call until there is a reply, and return what `read` makes of it."""
        headers = {"Authorization": f"Bearer {self._token}"}
        if body is not None:
            headers |= {"Content-Type": MEDIA_TYPE, "Idempotency-Key": _new_key()}
        began, pause = time.monotonic(), _FIRST_PAUSE
        give_up = began + self._timeout
        while True:
            left, at_least = max(give_up - time.monotonic(), 0.001), 0.0
            try:
                status, reply, retry_after = self._send(method, path, body, headers, left)
            except (PermissionError, ssl.SSLCertVerificationError):
                raise
            except (OSError, http.client.HTTPException) as error:
                if getattr(error, "reason", None) == "WRONG_VERSION_NUMBER":
                    raise ConnectionError(f"{self._url} speaks no TLS: is it http://?") from None
                failure: Exception = error
                if not self._was_reached and isinstance(error, _NOBODY):
                    give_up = began + min(self._timeout, _NOBODY_SECONDS)
            else:
                self._was_reached = True
                fields = _parsed(status, reply)
                waits = status in _RETRIED or fields is None and (status >= 500 or status == 429)
                if status == 429 and retry_after is not None:
                    # to wait until tomorrow does not help a call that has seconds
                    waits, at_least = time.monotonic() + retry_after <= give_up, retry_after
                if not waits:
                    return self._result(status, fields, body is not None, read)
                message = None if fields is None else str(fields["error"].get("message"))
                failure = ConnectionError(message or f"it replied {status}")
            if time.monotonic() + max(pause, at_least) > give_up:
                raise ConnectionError(
                    f"{self._url} gave no answer within {give_up - began:g} seconds: {failure}"
                ) from failure
            if time.monotonic() - began > _QUIET_SECONDS:
                logger.warning("waiting for %s: %s", self._url, failure)
            time.sleep(max(at_least, pause * random.uniform(0.5, 1.0)))  # noqa: S311
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _result(
        self, status: int, fields: dict[str, Any] | None, is_counted: bool, read: _Read[_T]
    ) -> _T:
        """What `read` makes of the fields of a reply; raises the error that the service names."""
        if status != 200 and fields is not None:
            error = fields["error"]
            kind, message = str(error.get("type")), str(error.get("message"))
            if kind == "HoldoutExhausted":
                self._halted = True
                raise HoldoutExhausted(message, n_answered=int(error.get("n_answered", 0)))
            raise _ERRORS.get(kind, RuntimeError)(message)
        with contextlib.suppress(KeyError, TypeError, ValueError):
            if fields is not None:
                return read(fields)
        reason = f"{self._url} is no service of a holdout: it replied {status}"
        if not is_counted:
            raise ValueError(reason)
        # or a proxy has replaced its reply
        raise ConnectionError(f"{reason}, and whether the call was counted is not known")

    def _send(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], seconds: float
    ) -> tuple[int, bytes, float | None]:
        """Send a call once, and return status, body and Retry-After of the reply."""
        connection = self._connection(seconds)
        try:
            connection.request(method, self._path + path, body, headers)
            response = connection.getresponse()
            reply = response.read()
        except BaseException:  # Ctrl-C too: the rest of a reply may still arrive
            connection.close()
            self.close()  # after a restart of the service the others would fail one by one
            raise
        if not response.will_close:
            self._idle.append(connection)
        seconds_text = response.getheader("Retry-After", "")
        retry_after = float(seconds_text) if _SECONDS.fullmatch(seconds_text) else None
        return response.status, reply, retry_after

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        """An idle connection, or a new one; a list's `pop` and `append` need no lock."""
        if self._process != os.getpid():  # a forked child: they are the parent's
            _close_all(self._idle)
            self._process = os.getpid()
        try:
            connection = self._idle.pop()
        except IndexError:
            return self._connect(timeout=seconds)
        connection.sock.settimeout(seconds)
        return connection


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _new_key() -> str:
    """A unique idempotency key that begins with the time: neighbours in an index are faster."""
    return f"{time.time_ns():016x}{uuid.uuid4().hex}"


def _close_all(idle: list[http.client.HTTPConnection]) -> None:
    with contextlib.suppress(IndexError):
        while True:
            idle.pop().close()


def _answer(fields: dict[str, Any]) -> RemoteAnswer:
    """The answer that has the fields of a reply."""
    kind: type[RemoteAnswer] = RemoteAnswer
    if "verdict" in fields:
        kind, fields = RemoteVerdict, dict.fromkeys(SCORES) | fields
    elif "key" in fields:
        kind = RemoteComparedAnswer if "gain" in fields else RemoteSearchAnswer
    values = {name: fields[name] for name in kind.__match_args__}
    for name in (*SCORES, *GAINS):
        if name in values:
            values[name] = math.nan if values[name] is None else float(values[name])
    return kind(**values)


def _answers(fields: dict[str, Any]) -> Answers[RemoteAnswer]:
    if "verdicts" in fields:
        each = fields["verdicts"]
    else:
        columns = answers_in(fields)
        each = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    answers = [_answer(one) for one in each]
    return Answers(answers, halted=bool(fields["halted"]), n_answered=int(fields["n_answered"]))


def _npy(values: Any) -> bytes:
    if values.dtype.hasobject:
        values = np.asarray(values.tolist())
        if values.dtype.hasobject:
            raise TypeError("y_pred must be numbers or strings, got objects")
    file = io.BytesIO()
    np.lib.format.write_array(file, np.ascontiguousarray(values), allow_pickle=False)
    return file.getvalue()


def _parsed(status: int, reply: bytes) -> dict[str, Any] | None:
    """Fields of a reply; None if it is none of the service's."""
    try:
        fields = json.loads(reply)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or status != 200 and not isinstance(fields.get("error"), dict):
        return None
    return fields
