"""How it is installed for others: the container of examples/service, pipx and uvx.

The container is linted, and its steps are done outside of one.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.source
for package in ("dockerfile_parse", "compose_spec"):
    if not find_spec(package):
        pytest.skip(f"{package} is not installed", allow_module_level=True)

from compose_spec import PyCompose  # noqa: E402
from dockerfile_parse import DockerfileParser  # noqa: E402
from proxies import EXAMPLES  # noqa: E402
from serving import tokens_file  # noqa: E402

ROOT = EXAMPLES.parents[1]
CONTAINERFILE = EXAMPLES / "Containerfile"
OF_THE_SYSTEM = ("apt-get", "useradd")  # steps that only a container can do
PLACES = ("/build", "/wheels", "/opt/radabound", "/data")  # in the container
IGNORED = shutil.ignore_patterns("*.so", "__pycache__")


def instructions():
    """(name, value) of each."""
    with open(CONTAINERFILE, "rb") as file:
        return [
            (one["instruction"], one["value"])
            for one in DockerfileParser(fileobj=file).structure
            if one["instruction"] != "COMMENT"
        ]


def last(name):
    return [value for one, value in instructions() if one == name][-1]


def health_check():
    return json.loads(last("HEALTHCHECK").partition(" CMD ")[2])


def test_the_containerfile_is_linted():
    if (linter := shutil.which("hadolint", path=Path(sys.executable).parent)) is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([linter, CONTAINERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def services():
    compose = PyCompose.from_yaml((EXAMPLES / "compose.yaml").read_text(encoding="utf-8"))
    compose.validate()
    return compose.to_dict()["services"]


def test_the_compose_file_is_one_and_names_files_that_are_there():
    proxy, service = services()["proxy"], services()["radabound"]
    assert (EXAMPLES / service["build"]["context"]).resolve() == ROOT
    assert ROOT / service["build"]["dockerfile"] == CONTAINERFILE
    assert "./Caddyfile:/etc/caddy/Caddyfile:ro" in map(str, proxy["volumes"])
    # it listens on loopback, which is the proxy's too, and publishes no port
    assert service["network_mode"] == "service:proxy" and not service.get("ports")
    assert "reverse_proxy 127.0.0.1:8000" in (EXAMPLES / "Caddyfile").read_text(encoding="utf-8")
    assert "http://127.0.0.1:8000/ready" in health_check()[-1]
    # the only place that it can write, but for /tmp, is where its user may
    assert service["read_only"] and last("WORKDIR") == "/data"
    assert [str(volume).partition(":")[2] for volume in service["volumes"]] == ["/data"]


def test_it_runs_as_a_user_without_rights():
    number = last("USER").partition(":")[0]
    assert number.isdecimal() and int(number) > 999
    names = [name for name, _ in instructions()]
    assert names.index("USER") > max(place for place, name in enumerate(names) if name == "RUN")


def without_rights(command):
    """As the container's user, where that can be chosen; it may read a Python in root's folder."""
    if os.geteuid() != 0:
        return command
    if (setpriv := shutil.which("setpriv")) is None:
        pytest.skip("needs setpriv, or another user than root")
    number = last("USER").partition(":")[0]
    return [
        setpriv, f"--reuid={number}", f"--regid={number}", "--clear-groups", "--no-new-privs",
        "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search",
        "--bounding-set=-all,+dac_read_search", *command,
    ]  # fmt: skip


class Inside:
    """What would be in the container, in a folder of this machine."""

    def __init__(self, root):
        self.root = self.folder = root
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        # unoptimised: the wheel is made in a third of the time
        self.environment = os.environ | {"PATH": path, "CFLAGS": "-O0"}
        self.environment.pop("PYTHONPATH", None)

    def outside(self, text):
        return re.sub(rf"({'|'.join(PLACES)})\b", rf"{self.root}\1", text)

    def start(self, command, *, limited=True, **options):
        words = list(map(self.outside, command))
        return subprocess.Popen(
            without_rights(words) if limited else words,
            cwd=self.folder, env=self.environment, text=True, **options,
        )  # fmt: skip

    def succeeds(self, command):
        return self.start(command, stderr=subprocess.DEVNULL).wait(60) == 0

    def do(self, step, value):
        if step == "WORKDIR":
            self.folder = Path(self.outside(value))
            self.folder.mkdir(parents=True, exist_ok=True)
        elif step == "ENV":
            variable, _, text = value.partition("=")
            self.environment[variable] = self.outside(text).replace(
                "$PATH", self.environment["PATH"]
            )
        elif step == "COPY" and not value.startswith("--from"):
            *sources, target = value.split()
            for source in sources:
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, self.folder / target, ignore=IGNORED)
                else:
                    shutil.copy(ROOT / source, self.folder / target)
        elif step == "RUN" and not value.startswith(OF_THE_SYSTEM):
            assert self.start(["sh", "-ec", value], limited=False).wait(600) == 0


@pytest.fixture(scope="module")
def inside():
    with tempfile.TemporaryDirectory(prefix="container") as name:
        Path(name).chmod(0o755)  # the container's user is another one
        inside = Inside(Path(name))
        for step, value in instructions():
            inside.do(step, value)
        for path in (inside.folder, tokens_file(inside.folder)):
            if os.geteuid() == 0:
                os.chown(path, *map(int, last("USER").split(":")))
        np.save(inside.folder / "labels.npy", np.arange(600) % 2)
        yield inside


@contextlib.contextmanager
def served(inside, command):
    """The service of this command, on a free port, and the health check of that port."""
    process = inside.start([*command, "--port", "0"], stdout=subprocess.PIPE)
    try:
        line = process.stdout.readline()
        port = re.search(r"http://127\.0\.0\.1:(\d+) answers 4 names", line)[1]
        yield [word.replace("8000", port) for word in health_check()], process, line
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.thorough
def test_what_it_runs_serves_is_healthy_and_is_not_when_it_has_ended(inside):
    entry, usual = json.loads(last("ENTRYPOINT")), json.loads(last("CMD"))
    first = shlex.split(services()["radabound"]["command"])
    assert first[: len(usual)] == usual  # and the options of a guard that is not there yet
    for command in (first, usual):
        with served(inside, entry + command) as (check, process, line):
            assert "a ConfirmedSearch" in line
            assert inside.succeeds(check)
            if sys.platform == "linux":
                status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
                assert not re.search(r"^Uid:.*\b0\b", status, re.M)
            process.send_signal(signal.SIGTERM)  # as `docker stop` does
            assert process.wait(60) in (0, 128 + signal.SIGTERM, -signal.SIGTERM)
            assert not inside.succeeds(check)


@pytest.mark.thorough
@pytest.mark.skipif(os.geteuid() != 0, reason="whoever is not root has made it all himself")
def test_its_user_can_write_beside_the_database_alone(inside):
    assert inside.succeeds(["touch", "/data/x"])
    assert not inside.succeeds(["touch", "/opt/radabound/x"])


WHEEL = "/wheels/radabound_fast-*.whl"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command",
    [
        f"pipx run --spec {WHEEL} radabound info",
        f"uvx --from {WHEEL} radabound info",
        "pipx run radabound_fast info",
        "uvx --from radabound_fast radabound info",
    ],
)
def test_it_runs_without_being_installed(inside, tmp_path, command):
    tool = command.split()[0]
    if shutil.which(tool, path=inside.environment["PATH"]) is None:
        pytest.skip(f"{tool} is not installed")
    wheels = {name: str(inside.root / "wheels") for name in ("PIP_FIND_LINKS", "UV_FIND_LINKS")}
    done = subprocess.run(
        ["sh", "-ec", inside.outside(command)],
        cwd=tmp_path,
        env=inside.environment | wheels | {"PIPX_HOME": str(tmp_path / "pipx")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "portable   agrees with the reference" in done.stdout
