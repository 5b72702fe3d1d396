"""Windows and macOS: what only POSIX or only Linux has is not needed to import clampz, to solve, or to run commands.

A process pretends to be Windows, once the libraries that look at the platform themselves are imported: names and
modules that are not there are taken away, and what Linux tells in files is gone.  (On macOS more of it is there.)
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import clampz as cz
from clampz.cli import standard_streams
from clampz.runtime import options

PRETEND = """
import asyncio, builtins, concurrent.futures.process, ctypes, gzip, io, json, multiprocessing.pool, os, pathlib, signal
import subprocess, sys, tempfile, warnings, zipfile
import numba, numpy, rich.console, rich.table, rich.live, scipy.optimize, scipy.sparse.csgraph, scipy.special

modules = "fcntl resource termios tty pty pwd grp posix readline syslog crypt nis".split()
names = {{
    os: "fork forkpty getuid geteuid getgid getpgid getppid setsid setpgid killpg sysconf sysconf_names uname mkfifo "
    "wait sched_getaffinity sched_setaffinity pathconf nice getloadavg openpty wait4 waitid chown chroot",
    signal: "SIGALRM SIGKILL SIGHUP SIGQUIT SIGUSR1 SIGUSR2 SIGCHLD SIGPIPE SIGSTOP SIGTSTP alarm setitimer getitimer "
    "pthread_kill pthread_sigmask sigwait siginterrupt pause",
}}

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in modules:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
for name in modules:
    sys.modules.pop(name, None)
for module, missing in names.items():
    for name in missing.split():
        delattr(module, name)
opened = io.open

def without_linux(file, *args, **more):
    if str(file).startswith(("/proc", "/sys")):
        raise FileNotFoundError(2, "No such file or directory", str(file))
    return opened(file, *args, **more)

io.open = builtins.open = without_linux
sys.platform = "win32"

class Kernel32:
    def GlobalMemoryStatusEx(self, status):
        status[2] = 2**33
        return 1

ctypes.windll = type("windll", (), {{"kernel32": Kernel32()}})
warnings.filterwarnings("error", category=EncodingWarning, module="clampz")
os.chdir({folder!r})
"""
WORK = """
import clampz as cz
from clampz.cli import main
from clampz.runtime.options import memory_allowed

assert memory_allowed(None) == 2**32
model = cz.generators.cycle(4, rng=0)
for name in ("m.uai", "m.fg", "m.json", "m.npz", "m.json.gz"):
    cz.write(model, name)
    assert abs(cz.exact(cz.read(name)).log_z - cz.exact(model).log_z) < 1e-9
assert cz.trw(model).upper >= cz.solve(model).log_z
assert cz.bound(model, checkpoint="some.bounds", time=5).gap < 0.01
for command in ("solve m.uai", "info m.json", "convert m.uai other.npz", "solve m.npz --task MAR --out r.csv"):
    assert main(command.split()) == 0, command
assert main(["solve", "nowhere.uai"]) == 2
print("all of it")
"""


def test_the_library_and_its_commands_run_on_windows(tmp_path):
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-c", PRETEND.format(folder=str(tmp_path)) + WORK],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and done.stdout.endswith("all of it\n"), done.stderr[-2000:]


def no_proc(monkeypatch):
    def nothing(*_, **__):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(options.Path, "read_text", nothing)


def test_macos_says_what_there_is_and_not_what_is_free(monkeypatch):
    no_proc(monkeypatch)
    known = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf_names", known, raising=False)
    monkeypatch.setattr(os, "sysconf", known.__getitem__, raising=False)
    assert options.memory_allowed(None) == 1000 * 4096 // 4
    known["SC_AVPHYS_PAGES"] = 900
    assert options.memory_allowed(None) == 900 * 4096 // 2


def test_a_system_that_says_nothing_of_its_memory(monkeypatch):
    no_proc(monkeypatch)
    monkeypatch.setattr(os, "sysconf_names", {}, raising=False)
    assert options.memory_allowed(None) == options.UNKNOWN_BYTES // 2
    assert cz.exact(cz.Model(np.zeros((2, 2)))).log_z == pytest.approx(2 * np.log(2))


def test_windows_calls_a_pipe_that_nobody_reads_an_invalid_argument(monkeypatch):
    invalid = OSError(22, "Invalid argument")
    assert standard_streams.is_broken_pipe(BrokenPipeError()) and not standard_streams.is_broken_pipe(invalid)
    monkeypatch.setattr(sys, "platform", "win32")
    assert standard_streams.is_broken_pipe(invalid)
