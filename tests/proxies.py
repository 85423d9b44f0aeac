"""The reverse proxies of examples/service, started on loopback in front of a service."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from serving import Running

EXAMPLES = Path(__file__).parents[1] / "examples" / "service"


def certificate(folder):
    """A certificate of this machine's own and its key, in PEM."""
    cert, key = Path(folder) / "cert.pem", Path(folder) / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


def changed(text, changes):
    """A configuration with other addresses and files; ValueError if it lacks one of them."""
    for old, new in changes.items():
        if old not in text:
            raise ValueError(f"the configuration must have {old!r}")
        text = text.replace(old, new)
    return text


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def nginx(folder, port, upstream):
    """The command that starts nginx there."""
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    configuration = folder / "nginx.conf"
    configuration.write_text(changed((EXAMPLES / "nginx.conf").read_text(), {
        "user www-data;": "user root;" if os.geteuid() == 0 else "",  # which may read the folder
        "pid /run/nginx.pid;": f"pid {folder}/nginx.pid;",
        "server 127.0.0.1:8000 ": f"server 127.0.0.1:{upstream} ",
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "listen [::]:443 ssl;": "",
        "/etc/radabound/": f"{folder}/",
        "access_log off;": f"access_log off;\n{paths}",
    }))  # fmt: skip
    return [shutil.which("nginx"), "-p", folder, "-c", configuration, "-g", "daemon off;"]


def caddy(folder, port, upstream):
    """The command that starts Caddy there."""
    configuration = folder / "Caddyfile"
    configuration.write_text(changed((EXAMPLES / "Caddyfile").read_text(), {
        "\nholdout.example.org {": (
            f"\nhttps://127.0.0.1:{port} {{\n\ttls {folder}/cert.pem {folder}/key.pem"),
        "\n{\n": "\n{\n\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n",
        "reverse_proxy 127.0.0.1:8000 {": f"reverse_proxy 127.0.0.1:{upstream} {{",
        "/var/log/caddy/": f"{folder}/",
    }))  # fmt: skip
    return [shutil.which("caddy"), "run", "--config", configuration, "--adapter", "caddyfile"]


PROXIES = {"nginx": nginx, "caddy": caddy}


class Front(Running):
    """A proxy: where it listens, whom to trust, and its process."""

    def __init__(self, port, folder, pid):
        super().__init__(port, cafile=folder / "cert.pem")
        self.pid, self.log = pid, folder / "proxy.log"


@contextlib.contextmanager
def in_front(name, folder, upstream):
    """A proxy in front of the service that listens at the port `upstream`."""
    folder = Path(folder) / name
    folder.mkdir()
    certificate(folder)
    port = free_port()
    with open(folder / "proxy.log", "wb") as log:
        process = subprocess.Popen(
            PROXIES[name](folder, port, upstream), stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, env={**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)},
        )  # fmt: skip
    try:
        for _ in range(500):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            if process.poll() is not None:
                break
            time.sleep(0.02)
        else:
            raise TimeoutError(f"{name} does not listen")
        if process.poll() is not None:
            raise OSError(f"{name} does not start: {(folder / 'proxy.log').read_text()[-2000:]}")
        yield Front(port, folder, process.pid)
    finally:
        process.terminate()
        process.wait()
