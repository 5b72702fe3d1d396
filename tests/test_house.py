"""The house itself: names that explain themselves, one home each, and imports that can be seen."""

import ast
import importlib
import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

import clampz as cz
import reproduction

ROOT = Path(cz.__file__).parent
REPRODUCTION = Path(reproduction.__file__).parent
FILES = sorted([*ROOT.rglob("*.py"), *REPRODUCTION.rglob("*.py")])
TEXTS = {path: path.read_text(encoding="utf-8") for path in FILES}
TREES = {path: ast.parse(text) for path, text in TEXTS.items()}
NODES = {path: list(ast.walk(tree)) for path, tree in TREES.items()}

PUBLIC = {name: getattr(cz, name) for name in cz.__all__}
FUNCTIONS = {name: each for name, each in PUBLIC.items() if callable(each) and not inspect.isclass(each)}

# Words that the code had for what the field has words for, and phrases that say nothing when read alone.
OLD_WORDS = (
    *("Watch", "watch", "Overdue", "LeafState", "Guess", "ladder", "sealed", "sight", "under_way", "way_back"),
    *("way back", "by_fields", "by_trees", "bracketing", "whoever", "so many", "gone on with", "region"),
    *("regions", "taking_up"),
)


def short(path):
    """The last of a path, as messages show it."""
    return "/".join(path.parts[-3:])


def test_no_module_of_the_root_has_the_name_of_a_public_function():
    public = FUNCTIONS.keys()
    modules = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert {"clamp", "exact", "bound", "solve", "read"} <= public
    assert {"model", "exact_inference", "solving"} <= modules
    assert not public & modules


def test_the_root_has_few_modules_and_no_file_is_long():
    modules = {path.stem for path in ROOT.glob("*.py")} - {"__init__", "__main__", "_version"}
    assert len(modules) <= 8, modules
    lines = {short(path): text.count("\n") for path, text in TEXTS.items()}
    assert not {path: number for path, number in lines.items() if number > 400}


def test_public_names_are_what_people_type():
    assert 40 <= len(cz.__all__) <= 55 and len(set(cz.__all__)) == len(cz.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_calls_return_is_among_the_results(name):
    """Or among the public names, as models are; a class of another library is not asked about."""
    own = {node.name for nodes in NODES.values() for node in nodes if isinstance(node, ast.ClassDef)}
    returned = re.findall(r"\w+", str(inspect.signature(FUNCTIONS[name]).return_annotation))
    assert own & set(returned) <= {*cz.results.__all__, *cz.__all__}


def below(kind):
    """The classes that inherit from one."""
    return {found for each in kind.__subclasses__() for found in (each, *below(each))}


def test_options_and_errors_are_where_they_are_documented():
    classes = {node.name for nodes in NODES.values() for node in nodes if isinstance(node, ast.ClassDef)}
    own = {name for name in classes if name.endswith("Options") and not name.startswith("_")}
    assert len(own) >= 6 and own <= set(cz.options.__all__)
    raised = {each for each in below(cz.errors.ClampzError) if each.__module__.startswith("clampz.")}
    assert len(raised) >= 6 and all(getattr(cz.errors, each.__name__) is each for each in raised)


@pytest.mark.parametrize("word", OLD_WORDS)
def test_words_that_went_do_not_come_back(word):
    pattern = re.compile(rf"\b{word}\b")
    found = [
        f"{short(path)}:{number}"
        for path, text in TEXTS.items()
        if path.is_relative_to(ROOT)  # (tables that the reproduction has published keep theirs)
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]
    assert not found


def test_every_package_says_what_it_is_for():
    packages = [path for path in FILES if path.name == "__init__.py" and path.parent != ROOT]
    assert len(packages) >= 10
    for path in packages:
        assert ast.get_docstring(TREES[path]), path


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


@pytest.mark.parametrize("folder", [ROOT, REPRODUCTION])
def test_no_class_exists_twice_in_a_package(folder):
    """Packages may have a word in common: each has a problem of its own, draws, what it was asked."""
    trees = [(path.relative_to(folder).parts[0], tree) for path, tree in TREES.items() if path.is_relative_to(folder)]
    classes = ((room, node) for room, tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    names = Counter((room, node.name) for room, node in classes)
    assert [name for name, count in names.items() if count > 1] == []
