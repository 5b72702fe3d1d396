"""`clampz completion`: scripts that shells take, and that complete."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import run

from clampz import cli
from clampz.cli.arguments import SELECTORS


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_completion_knows_every_command_option_and_selector(shell, capsys, tmp_path):
    assert run("completion", shell) == 0
    script = capsys.readouterr().out
    for text in (*(module.__name__.split(".")[-1] for module in cli.COMMANDS), *SELECTORS, "evidence"):
        assert text in script
    if shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["clampz", "sol"], {"solve"}),
        (["clampz", "solve", "--met"], {"--method"}),
        (["clampz", "solve", "--method", "b"], {"bethe"}),
        (["clampz", "generate", "gr"], {"grid"}),
        (["clampz", "solve", "gr"], {"grid.uai"}),
        (["clampz", "solve", "grid.uai", "--evidence", "so"], {"some.evid"}),
        (["clampz", "solve", "grid.uai", "--select", "pseudo"], {"pseudo-greedy"}),
        (["clampz", "uai", "grid.uai", "some.evid", "-", "MA"], {"MAR", "MAP"}),
    ],
)
def test_bash_completes(words, expected, folder, capsys):
    run("completion", "bash")
    Path("script").write_text(capsys.readouterr().out)
    quoted = " ".join(f"'{word}'" for word in words)
    command = f'''source ./script
COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}
complete=($(complete -p clampz))
"${{complete[-2]}}"
printf "%s\\n" "${{COMPREPLY[@]}}"'''
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (set(done.stdout.split()), done.stderr) == (expected, "")


def test_without_shtab_it_says_so(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert run("completion", "bash") == 2
    message = "clampz completion: this command needs shtab, and shtab is not installed: pip install 'clampz[cli]'\n"
    assert capsys.readouterr() == ("", message)
