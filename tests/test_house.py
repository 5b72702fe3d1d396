"""The house itself: names that explain themselves, one home each, and imports that can be seen."""

import ast
import importlib
import inspect
import re
from collections import Counter
from pathlib import Path

import clampz as cz
import reproduction

ROOT = Path(cz.__file__).parent
REPRODUCTION = Path(reproduction.__file__).parent
FILES = sorted([*ROOT.rglob("*.py"), *REPRODUCTION.rglob("*.py")])
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
NODES = {path: list(ast.walk(tree)) for path, tree in TREES.items()}


def test_no_module_of_the_root_has_the_name_of_a_public_function():
    public = {name for name in cz.__all__ if callable(getattr(cz, name)) and not inspect.isclass(getattr(cz, name))}
    modules = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert {"clamp", "exact", "bound", "solve", "read"} <= public
    assert {"model", "elimination", "solving"} <= modules
    assert not public & modules


def test_every_package_says_what_it_is_for_and_what_it_may_import():
    packages = [path for path in FILES if path.name == "__init__.py" and path.parent != ROOT]
    assert len(packages) >= 10
    for path in packages:
        text = ast.get_docstring(TREES[path]) or ""
        assert "May import:" in text, path


def public_names(module: str) -> set[str]:
    """What a module offers: the names that it lists, or else the classes that it defines."""
    found = importlib.import_module(module)
    classes = {name for name, each in vars(found).items() if inspect.isclass(each) and each.__module__ == module}
    return set(getattr(found, "__all__", classes))


def test_the_reproduction_uses_public_names_alone():
    used = set()
    for path in (path for path in FILES if path.is_relative_to(REPRODUCTION)):
        for node in NODES[path]:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("clampz"):
                used |= {(node.module or "", alias.name) for alias in node.names}
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("cz", "clampz"):
                used.add(("clampz", node.attr))
            elif isinstance(node, ast.Attribute) and re.fullmatch(r"cz\.(\w+)", module := ast.unparse(node.value)):
                used.add((module.replace("cz", "clampz", 1), node.attr))
    assert ("clampz", "clamp") in used and ("clampz.errors", "OptionError") in used
    private = {f"{module}.{name}" for module, name in used if name not in public_names(module)}
    assert private == {"clampz.__version__"}


def test_no_import_hides_in_a_string():
    for path in FILES:
        for node in NODES[path]:
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
                "import_module",
                "__import__",
            ):
                hidden = [
                    word for word in ast.walk(node) if isinstance(word, ast.Constant) and "clampz" in str(word.value)
                ]
                assert not hidden, f"{path}:{node.lineno}"


def test_text_is_utf_8_wherever_it_is_read_or_written():
    """Windows would take another encoding where none is said."""
    for path in FILES:
        for call in (node for node in NODES[path] if isinstance(node, ast.Call)):
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            of = getattr(getattr(call.func, "value", None), "id", "")
            said = {word.arg for word in call.keywords}
            modes = [word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
            is_text = name in ("read_text", "write_text", "TextIOWrapper") or (
                name in ("open", "opened", "fdopen")
                and of not in ("os", "Image", "gzip")
                and not any("b" in m for m in modes)
            )
            assert not is_text or "encoding" in said, f"{path}:{call.lineno}"


def asks_for_platform(node):
    return isinstance(node, ast.If) and "sys.platform" in ast.unparse(node.test)


def test_what_only_posix_has_is_imported_where_it_may_be_missing():
    only_posix = {"fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "posix", "readline", "syslog"}
    for path in FILES:
        cautious = [each for each in NODES[path] if isinstance(each, ast.Try) or asks_for_platform(each)]
        tried = {id(node) for each in cautious for node in ast.walk(each)}
        for node in NODES[path]:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & only_posix or id(node) in tried, f"{path}:{node.lineno}"


def test_no_class_exists_twice():
    names = Counter(node.name for tree in TREES.values() for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []
