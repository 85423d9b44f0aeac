"""What a process inherits of signals: a background shell starts it with SIGINT ignored."""

from __future__ import annotations

import signal


def heed() -> None:
    """Let the signals that trials send do what they do by default, whatever the parent ignores."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGALRM", "SIGTERM", "SIGCHLD"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
