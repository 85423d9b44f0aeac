"""A guard in another process, as `radabound serve` has it: a client without labels."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import math
import os
import random
import ssl
import threading
import time
import uuid
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NoReturn, Self, TypeVar
from urllib.parse import urlsplit

import numpy as np

from radabound_fast import _kernel
from radabound_fast._checks import check_positive
from radabound_fast._kernel import Answer
from radabound_fast.guards.answers import Answers
from radabound_fast.guards.exhausted import HoldoutExhausted
from radabound_fast.metrics import METRICS
from radabound_fast.rows.labels import Labels
from radabound_fast.rows.packing import as_array
from radabound_fast.service.wire import MEDIA_TYPE, VISIBLE, code_dtype, packed

_T = TypeVar("_T")

# what is asked again: the service, or a proxy before it, was not there
_AGAIN = (502, 503, 504)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_ERRORS: dict[str, type[Exception]] = {
    "TypeError": TypeError,
    "ValueError": ValueError,
    "PermissionError": PermissionError,
    "LookupError": LookupError,
    "TimeoutError": TimeoutError,
}


@dataclass(frozen=True, slots=True, repr=False)
class RemoteAnswer(Answer):
    """One answer of a `RemoteGuard`.

    Attributes
    ----------
    value, low, high, half_width : float
        As in `Answer`; nan where the guard has none.
    number : int
        Answers given so far, this one included, whoever asked.
    """

    # field(): else the properties of `Answer` would be taken for their defaults
    value: float = field()
    low: float = field()
    high: float = field()
    half_width: float = field()
    number: int = field()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name, as a new dict."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, slots=True, repr=False)
class RemoteSearchAnswer(RemoteAnswer):
    """One answer of a `RemoteGuard` that is a `DeclaredSearch`.

    Attributes
    ----------
    key, rerun
        The model: its key in the space, and which training of it.

    Notes
    -----
    It has the attributes of `RemoteAnswer` as well.
    """

    key: Any
    rerun: int


@dataclass(frozen=True, slots=True, repr=False)
class RemoteComparedAnswer(RemoteSearchAnswer):
    """One answer of a `RemoteGuard` that is a `DeclaredSearch` with a baseline.

    Attributes
    ----------
    gain, gain_low, gain_high : float
        As in `ComparedAnswer`.

    Notes
    -----
    It has the attributes of `RemoteSearchAnswer` as well.
    """

    gain: float
    gain_low: float
    gain_high: float


class RemoteReport:
    """What a `DeclaredSearch` came to, as the service tells it: see `Report`.

    ``str(report)`` is the sentence to paste; a notebook shows the picture and the ten best models.

    Attributes
    ----------
    metric, n_samples, n_models, space_size, delta, baseline, guarantee
        As of a `Report`.
    best : dict
        The best answer, by name.
    """

    def __init__(self, told: dict[str, Any]) -> None:
        self._html = str(told.pop("html"))
        self._ranking: list[dict[str, Any]] = told.pop("ranking")
        self._told = told
        self.metric: str = told["metric"]
        self.n_samples: int = told["n_samples"]
        self.n_models: int = told["n_models"]
        self.space_size: int | None = told["space_size"]
        self.delta: float = told["delta"]
        self.baseline: float | None = told["baseline"]
        self.guarantee: str = told["guarantee"]
        self.best: dict[str, Any] = told["best"]

    def ranking(self, n: int | None = None) -> list[dict[str, Any]]:
        """The n best answers by name, the best first; at most ten are told."""
        return self._ranking[:n]

    def to_json(self) -> str:
        """As `Report.to_json`."""
        return json.dumps(self._told, indent=2)

    def __str__(self) -> str:
        return str(self._told["sentence"])

    def _repr_html_(self) -> str:
        return self._html


@dataclass(frozen=True, slots=True)
class RemoteHoldout:
    """What a `RemoteGuard` judges, as far as it is known here: its labels stay with the service.

    Attributes
    ----------
    n_samples, metric, takes, greater_is_better, classes, pos_label
        As in `Holdout`.
    """

    n_samples: int
    metric: str
    takes: str
    greater_is_better: bool
    classes: list[Any] | None
    pos_label: Any

    @property
    def labels(self) -> None:
        """None: they stay with the service."""
        return None


class RemoteGuard:
    """A guard that another process serves (`radabound serve`): asks it over HTTP.

    The integrations take it in the place of a guard, and threads may share it.  It has no labels
    and may be copied, pickled and sent to workers: what they ask is counted by the service.

    Parameters
    ----------
    url : str
        Of the service, ``https://host:port``; http is for one machine, or behind a tunnel, and
        elsewhere a UserWarning.  No proxy of the environment is asked, no redirect followed.
    token : str
        Of the team that asks.  A copy and a pickle hold it, repr and errors do not.
    timeout : float, default 300
        How long, in seconds, a call may take in all, with what is asked again; only a reply that
        trickles in, and never stops for so long, may take more.
    cafile : path, optional
        Certificates to trust, in PEM; None: the system's.

    Raises
    ------
    PermissionError
        The service does not know the token.
    OSError
        It cannot be reached within `timeout`.
    TypeError, ValueError
        It is no such url or token, or no such service.

    Notes
    -----
    A call that got no reply is sent again with the key that it was sent with, and counted once,
    however often: whatever becomes of the connection, or of the service.  What the service
    refuses is raised as the guard raises it; that a team has no answers left today is a
    RuntimeError.
    """

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
        plain = parts.scheme in ("http", "https") and not (parts.query or parts.fragment)
        with contextlib.suppress(ValueError):  # no number, or too large
            # http.client would take the end of an address of IPv6 for one that is not there
            default = 443 if parts.scheme == "https" else 80
            port = default if parts.port is None else parts.port
        if not plain or not parts.hostname or not port or not VISIBLE.fullmatch(url):
            raise ValueError(f"url must be http://host:port or https://host:port, got {url!r}")
        if not isinstance(token, str):
            raise TypeError(f"token must be a string, got {type(token).__name__}")
        if not VISIBLE.fullmatch(token):
            raise ValueError("token must be visible characters of ASCII, and no end of a line")
        if parts.scheme == "http" and not _is_here(parts.hostname):
            warnings.warn(
                f"{parts.hostname} gets the token and predictions in clear: take https, or a "
                "tunnel",
                stacklevel=2,
            )
        self._url, self._token = url, token
        self._host, self._port = parts.hostname, port
        self._path = parts.path.rstrip("/")
        self._timeout = check_positive(timeout=timeout)
        self._cafile = cafile
        self._tls = None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context(cafile=cafile)
        # connections that nobody uses, of one process
        self._idle: list[http.client.HTTPConnection] = []
        self._process = os.getpid()
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._idle)
        self._get("/state", self._learn)

    def _learn(self, found: dict[str, Any]) -> None:
        self._holdout = RemoteHoldout(
            int(found["n_samples"]),
            str(found["metric"]),
            str(found["takes"]),
            METRICS[found["metric"]].greater_is_better,
            found["classes"],
            found["pos_label"],
        )
        self._needs: Literal["key", "guess"] | None = None
        if found["takes_keys"] or found["needs_guess"]:
            self._needs = "key" if found["takes_keys"] else "guess"
        self._kind, self._guarantee = str(found["mechanism"]), str(found["guarantee"])
        self._halted, self._max_body = bool(found["halted"]), int(found["max_body"])
        self._labels = None
        classes = self._holdout.classes
        if classes is not None and self._holdout.takes == "classes":
            # none of the holdout's: its first class everywhere, which predictions are told from
            self._labels = Labels(classes[:1] * self.n_samples, classes)

    def __reduce__(self) -> Any:
        return _again, (self._url, self._token, self._timeout, self._cafile)

    def __sklearn_clone__(self) -> Self:
        """scikit-learn's ``clone`` keeps this very object, as it keeps any guard."""
        return self

    # ---- what is known -------------------------------------------------------------------------

    @property
    def holdout(self) -> RemoteHoldout:
        """What the guard judges, without its labels."""
        return self._holdout

    @property
    def n_samples(self) -> int:
        """Held-out rows, m."""
        return self._holdout.n_samples

    @property
    def kind(self) -> str:
        """The name of the guard's class."""
        return self._kind

    @property
    def needs(self) -> Literal["key", "guess"] | None:
        """What a query brings beside predictions."""
        return self._needs

    @property
    def guarantee(self) -> str:
        """What is guaranteed, when, and proved by what."""
        return self._guarantee

    @property
    def halted(self) -> bool:
        """Whether a query has been withheld, whoever asked it; it never turns False again."""
        if not self._halted:
            self._halted = self._get("/state", lambda told: bool(told["halted"]))
        return self._halted

    @property
    def can_answer(self) -> bool:
        """Whether some query might be answered, as far as it is known here: False once halted."""
        return not self.halted

    @property
    def n_answered(self) -> int:
        """Answers given so far, whoever asked."""
        return self._get("/state", lambda told: int(told["n_queries"]))

    def what_would_answer(self, guess: float | None = None) -> str:
        """Return "": the service says it where it withholds a first answer."""
        return ""

    # ---- asking --------------------------------------------------------------------------------

    def query(
        self, y_pred: Any, *, guess: float | None = None, key: Any = None, rerun: int | None = None
    ) -> RemoteAnswer:
        """Return the guard's answer.

        Parameters
        ----------
        y_pred : array_like, shape (n_samples,)
            Predictions, as the guard's `query` takes them.
        guess, key, rerun
            As the guard's `query` takes them.

        Returns
        -------
        RemoteAnswer

        Raises
        ------
        HoldoutExhausted
            This query's answer is withheld, or an earlier one's was.
        TypeError, ValueError
            Not predictions for this holdout; nothing has changed.
        RuntimeError
            The team has no answers left today.
        OSError
            The service could not be reached within the time; PermissionError: it does not know
            the token.  **Whether the query was counted is not known then.**
        """
        return self._ask("/query", y_pred, 1, _answer, guess=guess, key=key, rerun=rerun)

    def query_many(
        self, Y_pred: Any, *, guesses: Any = None, keys: Any = None, reruns: Any = None
    ) -> Answers[RemoteAnswer]:
        """Answer rows in order by one commit: they are counted together or not at all.

        Parameters
        ----------
        Y_pred : array_like, shape (k, n_samples)
        guesses, keys, reruns
            As the guard's `query_many` takes them.

        Returns
        -------
        Answers
            One for each row before the first that was withheld.

        Raises
        ------
        HoldoutExhausted, TypeError, ValueError, RuntimeError, OSError
            As in `query`; ValueError as well if the service takes no body of this length.
        """
        given = {"guesses": guesses, "keys": keys, "reruns": reruns}
        listed: dict[str, list[Any]] = {}
        for name, values in given.items():
            if values is not None:
                if not np.iterable(values):
                    raise TypeError(f"{name} must be a sequence, one a row, got {values!r:.50}")
                listed[name] = list(values)
        answers = self._ask("/query_many", Y_pred, 2, _answers, **listed)
        self._halted = self._halted or answers.halted
        return answers

    def report(self) -> RemoteReport:
        """Return the report of a `DeclaredSearch`: on what this team queried; on all for the owner.

        Raises
        ------
        TypeError
            The guard is another one, and has no report.
        ValueError
            Nothing was queried yet.
        """
        return self._get("/report", RemoteReport)

    def close(self) -> None:
        """Let go of the connections; the next call makes a new one."""
        self._leave_the_parent()
        with self._lock:
            _close(self._idle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        # not the token
        return f"RemoteGuard({self._url!r}, n_samples={self.n_samples}, kind={self.kind!r})"

    # ---- predictions as octets -------------------------------------------------------------------

    def _ask(
        self, path: str, y_pred: Any, ndim: int, read: Callable[[dict[str, Any]], _T], **beside: Any
    ) -> _T:
        form, octets = self._packed(y_pred, ndim)
        head = {"form": form} | {name: one for name, one in beside.items() if one is not None}
        body = packed(head, octets)
        if len(body) > self._max_body:
            raise ValueError(
                f"a body must have at most {self._max_body:,} octets, got {len(body):,}: ask "
                "about fewer rows at once"
            )
        return self._call("POST", path, body, read)

    def _packed(self, y_pred: Any, ndim: int) -> tuple[str, bytes]:
        if self._labels is None:
            return "npy", _npy(as_array(y_pred, "y_pred"))
        if len(self._labels.classes) == 2:
            words = _kernel.pack_rows(*self._labels.match(y_pred, ndim))
            octets = np.atleast_2d(words).astype("<u8", copy=False).view(np.uint8)
            return "bits", octets[:, : -(-self.n_samples // 8)].tobytes()
        codes = self._labels.codes_of(y_pred, ndim)
        return "codes", codes.astype(code_dtype(len(self._labels.classes)), copy=False).tobytes()

    # ---- HTTP ------------------------------------------------------------------------------------

    def _get(self, path: str, read: Callable[[dict[str, Any]], _T]) -> _T:
        return self._call("GET", path, None, read)

    def _call(
        self, method: str, path: str, body: bytes | None, read: Callable[[dict[str, Any]], _T]
    ) -> _T:
        """What is read of the reply, once there is one."""
        headers = {"Authorization": f"Bearer {self._token}"}
        if body is not None:
            headers |= {"Content-Type": MEDIA_TYPE, "Idempotency-Key": _new_key()}
        give_up, pause = time.monotonic() + self._timeout, _FIRST_PAUSE
        while True:
            left = give_up - time.monotonic()
            try:
                status, reply = self._send(method, path, body, headers, max(left, 0.001))
            except (PermissionError, ssl.SSLCertVerificationError):
                raise
            except (OSError, http.client.HTTPException) as error:
                if getattr(error, "reason", None) == "WRONG_VERSION_NUMBER":
                    raise ConnectionError(f"{self._url} speaks no TLS: is it http://?") from None
                failure: Exception = error
            else:
                told = _told(status, reply)
                if status not in _AGAIN and (told is not None or status < 500):
                    if status != 200 and told is not None:
                        self._refuse(told["error"])
                    with contextlib.suppress(KeyError, TypeError, ValueError):
                        if told is not None:
                            return read(told)
                    found = f"{self._url} is no service of a holdout: it replied {status}"
                    if body is None:
                        raise ValueError(found)
                    # or what stands before it has hidden its reply
                    raise ConnectionError(f"{found}, and whether the call was counted is not known")
                failure = ConnectionError(_message(told) or f"it replied {status}")
            if time.monotonic() + pause > give_up:
                raise ConnectionError(
                    f"{self._url} gave no answer within {self._timeout:g} seconds: {failure}"
                ) from failure
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _send(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], seconds: float
    ) -> tuple[int, bytes]:
        connection = self._connection(seconds)
        try:
            connection.request(method, self._path + path, body, headers)
            response = connection.getresponse()
            reply = response.read()
        except BaseException:  # Ctrl-C too: what it would send next is not known
            connection.close()
            self.close()  # those of a service that was started anew would fail one after the other
            raise
        if not response.will_close:
            with self._lock:
                self._idle.append(connection)
        return response.status, reply

    def _leave_the_parent(self) -> None:
        """In the child of a fork: its connections are the parent's, and a thread had the lock."""
        if self._process != os.getpid():
            _close(self._idle)
            self._lock, self._process = threading.Lock(), os.getpid()

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        self._leave_the_parent()
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            if self._tls is None:
                return http.client.HTTPConnection(self._host, self._port, timeout=seconds)
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=seconds, context=self._tls
            )
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        return connection

    def _refuse(self, error: dict[str, Any]) -> NoReturn:
        kind, message = str(error.get("type")), str(error.get("message"))
        if kind == "HoldoutExhausted":
            self._halted = True
            raise HoldoutExhausted(message, n_answered=int(error.get("n_queries", 0)))
        raise _ERRORS.get(kind, RuntimeError)(message)


def _is_here(host: str) -> bool:
    """Whether what is sent to a host stays on this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _new_key() -> str:
    """No other call has it; those of a time are near each other in an index, which is faster."""
    return f"{time.time_ns():016x}{uuid.uuid4().hex}"


def _close(idle: list[http.client.HTTPConnection]) -> None:
    while idle:
        idle.pop().close()


def _again(url: str, token: str, timeout: float, cafile: Any) -> RemoteGuard:
    return RemoteGuard(url, token=token, timeout=timeout, cafile=cafile)


def _answer(told: dict[str, Any]) -> RemoteAnswer:
    names = ["value", "low", "high", "half_width"]
    numbers = {name: math.nan if told[name] is None else float(told[name]) for name in names}
    shared: dict[str, Any] = numbers | {"number": int(told["number"])}
    if "key" not in told:
        return RemoteAnswer(**shared)
    shared |= {"key": told["key"], "rerun": int(told["rerun"])}
    if "gain" not in told:
        return RemoteSearchAnswer(**shared)
    shared |= {name: float(told[name]) for name in ("gain", "gain_low", "gain_high")}
    return RemoteComparedAnswer(**shared)


def _answers(told: dict[str, Any]) -> Answers[RemoteAnswer]:
    names = ["values", "lows", "highs", "half_widths", "numbers", "keys", "reruns"]
    names = [name for name in (*names, "gains", "gain_lows", "gain_highs") if name in told]
    rows = zip(*(told[name] for name in names), strict=True)
    ones = [name.removesuffix("s") for name in names]
    answers = [_answer(dict(zip(ones, row, strict=True))) for row in rows]
    return Answers(answers, halted=bool(told["halted"]), n_answered=int(told["n_queries"]))


def _npy(values: Any) -> bytes:
    import io

    if values.dtype.hasobject:
        values = np.asarray(values.tolist())
        if values.dtype.hasobject:
            raise TypeError("y_pred must be numbers or strings, got objects")
    file = io.BytesIO()
    np.lib.format.write_array(file, np.ascontiguousarray(values), allow_pickle=False)
    return file.getvalue()


def _told(status: int, reply: bytes) -> dict[str, Any] | None:
    """What the service says; None if that is not how it speaks."""
    try:
        told = json.loads(reply)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or status != 200 and not isinstance(told.get("error"), dict):
        return None
    return told


def _message(told: dict[str, Any] | None) -> str | None:
    return None if told is None else str(told["error"].get("message"))
