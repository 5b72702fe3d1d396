#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""What a change must pass, each in an environment of its own; `.ci/run` asks the same and more in one.

nox                 lint, types and tests
nox -s docs         the site, every warning an error; `nox -s docs -- quick` leaves the tutorials as they are
nox -s build        sdist and wheel, checked, and the wheel installed and tried
nox -s coverage     which lines the tests reach, those of kernels included where they run without compilation
"""

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"

WITHOUT_COMPILATION = {"NUMBA_DISABLE_JIT": "1"}


@nox.session
def lint(session: nox.Session) -> None:
    """Layout, lint, spelling, Markdown, the law of imports."""
    session.install("-e", ".", "ruff", "import-linter", "codespell", "rumdl")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("codespell")
    session.run("rumdl", "check", ".")
    session.run("lint-imports", "--no-cache")


@nox.session
def types(session: nox.Session) -> None:
    """Types, strictly, of the package and its reproduction."""
    session.install("-e", ".[dev]")
    session.run("mypy", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests, or those named after `--`."""
    session.install("-e", ".[dev]")
    session.run("pytest", *session.posargs)


@nox.session(default=False)
def coverage(session: nox.Session) -> None:
    """Lines of the package that the tests reach, with and without compilation; ten minutes and more."""
    session.install("-e", ".[dev]")
    session.run("coverage", "erase")
    session.run("pytest", "--cov", "--cov-report=", *session.posargs)
    session.run("pytest", "-m", "nojit", "--cov", "--cov-append", "--cov-report=", env=WITHOUT_COMPILATION)
    session.run("coverage", "report")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The site in docs/_build/html."""
    session.install("-e", ".[docs,interop]")
    env = {"CLAMPZ_DOCS": "quick"} if "quick" in session.posargs else {}
    session.run("sphinx-build", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html", env=env)


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """What goes to the package index, in dist/; the wheel makes the demo in an environment without anything else."""
    dist = Path("dist").resolve()
    shutil.rmtree(dist, ignore_errors=True)
    session.install("build", "twine")
    session.run("python", "-m", "build", "--outdir", str(dist))
    session.run("twine", "check", "--strict", *map(str, dist.iterdir()))
    (wheel,) = dist.glob("*.whl")
    session.install(f"{wheel}[cli]")
    session.chdir(session.create_tmp())
    session.run("clampz", "demo")


if __name__ == "__main__":
    nox.main()
