"""The house itself: names that explain themselves, one home each, and imports that can be seen."""

import ast
import inspect
from collections import Counter
from pathlib import Path

import clampz as cz

ROOT = Path(cz.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def test_no_module_of_the_root_has_the_name_of_a_public_function():
    public = {name for name in cz.__all__ if callable(getattr(cz, name)) and not inspect.isclass(getattr(cz, name))}
    modules = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert {"clamp", "exact", "bounds", "solve", "read"} <= public
    assert {"model", "elimination", "choosing"} <= modules
    assert not public & modules


def test_every_package_says_what_it_is_for_and_what_it_may_import():
    packages = [path for path in FILES if path.name == "__init__.py" and path.parent != ROOT]
    assert len(packages) >= 10
    for path in packages:
        text = ast.get_docstring(ast.parse(path.read_bytes())) or ""
        assert "May import:" in text, path


def test_no_import_hides_in_a_string():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
                "import_module",
                "__import__",
            ):
                hidden = [
                    word for word in ast.walk(node) if isinstance(word, ast.Constant) and "clampz" in str(word.value)
                ]
                assert not hidden, f"{path}:{node.lineno}"


def test_no_class_exists_twice():
    names = Counter(
        node.name for path in FILES for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []
