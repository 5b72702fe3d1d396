"""Signatures as they are written in the source: `ArrayLike` and `Evidence`, where Python shows what they stand for.

Methods such as `clampz.trw` are objects, with the parameters that all methods share and options of their own:
their parameters are those of `inspect.signature`, and their types those of the call and of the options.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, Unpack, get_args, get_origin, is_typeddict

from docutils import nodes
from public_names import OBJECTS
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.pycode import ModuleAnalyzer

from clampz.method import Method
from clampz.runtime.options import with_keywords


def written(what: str, obj: Any) -> tuple[str, str | None] | None:
    """The parameters of something, in parentheses, and what it returns; None for what has no source of its own."""
    if isinstance(obj, Method):
        return _of_approximation(obj)
    if inspect.isclass(obj):
        return _of_class(obj)
    function = inspect.unwrap(getattr(obj, "__func__", obj))
    if not inspect.isfunction(function):
        return None
    return _in_parentheses(function, is_method=what == "method"), _unquoted(_function(function).returns)


def _function(function: Any) -> ast.FunctionDef:
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def _in_parentheses(function: Any, is_method: bool) -> str:
    """Types as they are written; values too, but those that have a name are shown as what they are."""
    node = _function(function)
    for each in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]:
        if each is not None and each.annotation is not None:
            each.annotation = ast.parse(_unquoted(each.annotation) or "", mode="eval").body
    parameters = with_keywords(function).parameters
    kind = function.__annotations__.get(node.args.kwarg.arg) if node.args.kwarg else None
    if get_origin(kind) is Unpack:  # (a TypedDict, whose fields are options)
        node.args.kwarg = None
        for name, written_type in dict(_fields(*get_args(kind))).items():
            node.args.kwonlyargs.append(ast.arg(name, ast.parse(written_type, mode="eval").body))
            node.args.kw_defaults.append(ast.parse(_value(parameters[name].default), mode="eval").body)
    by_place = [*node.args.posonlyargs, *node.args.args][-len(node.args.defaults) :]
    for places, values in ((by_place, node.args.defaults), (node.args.kwonlyargs, node.args.kw_defaults)):
        for k, (place, value) in enumerate(zip(places, values, strict=False)):
            if isinstance(value, ast.Name | ast.Attribute):
                values[k] = ast.parse(_value(parameters[place.arg].default), mode="eval").body
    if is_method and "staticmethod" not in [ast.unparse(each) for each in node.decorator_list]:
        del node.args.args[0]
    return f"({ast.unparse(node.args)})"


class _Unquote(ast.NodeTransformer):
    """Types in quotes, without them; those of `Literal` are values and keep theirs."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return node if ast.unparse(node.value) == "Literal" else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.parse(node.value, mode="eval").body if isinstance(node.value, str) else node


def _unquoted(annotation: ast.expr | None) -> str | None:
    return None if annotation is None else ast.unparse(_Unquote().visit(annotation))


def _of_class(kind: type) -> tuple[str, None] | None:
    if "__init__" in vars(kind) and not is_dataclass(kind):
        return _in_parentheses(kind.__init__, is_method=True), None  # type: ignore[misc]
    if is_dataclass(kind) and "__init__" in vars(kind) and inspect.isfunction(kind.__init__):
        try:
            return _in_parentheses(kind.__init__, is_method=True), None
        except (OSError, TypeError):  # made by the dataclass: of its fields
            pass
    if not (is_dataclass(kind) or hasattr(kind, "_fields")):
        return None
    types = dict(_fields(kind))
    parameters = [
        each.replace(annotation=each.empty)
        for name, each in inspect.signature(kind).parameters.items()
        if name[0] != "_"
    ]
    return _shown(parameters, types), None


def _fields(kind: type) -> Iterator[tuple[str, str]]:
    """Annotations in the bodies of a class and of those that it inherits from."""
    for base in _bases(kind):
        if base.__module__.startswith("clampz"):
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
            assert isinstance(body, ast.ClassDef)
            for line in body.body:
                if isinstance(line, ast.AnnAssign):
                    yield ast.unparse(line.target), _unquoted(line.annotation) or ""


def _bases(kind: type) -> list[type]:
    """A class after those that it inherits from; a TypedDict knows these only in its source."""
    if not is_typeddict(kind):
        return list(reversed(kind.__mro__))
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = vars(sys.modules[kind.__module__])
    above = [base for each in body.bases if is_typeddict(base := found[ast.unparse(each)])]
    return list(dict.fromkeys([*(base for each in above for base in _bases(each)), kind]))


def _of_approximation(method: Method[Any]) -> tuple[str, str]:
    call = _function(Method.__call__).args
    types = {each.arg: _unquoted(each.annotation) or "" for each in [*call.args, *call.kwonlyargs]}
    types |= dict(_fields(method.options_type))
    types["options"] = f"{method.options_type.__name__} | None"
    return _shown(list(method.__signature__.parameters.values()), types), "Estimate | Estimates"


def _shown(parameters: list[inspect.Parameter], types: dict[str, str]) -> str:
    """With types, and with values as they are written in Python."""
    words, has_star = [], False
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not has_star:
            words.append("*")
            has_star = True
        kind = f": {types[each.name]}" if each.name in types else ""
        value = "" if each.default is each.empty else f" = {_value(each.default)}"
        words.append(f"{each.name}{kind}{value}")
    return f"({', '.join(words)})"


def _value(value: Any) -> str:
    """`math.inf` is not a name that can be read back, and values made when a result is, are of no interest."""
    if isinstance(value, float) and value == float("inf"):
        return "inf"
    return repr(value) if isinstance(value, str | int | float | tuple | None) else "..."


def process(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """What autodoc asks for every signature."""
    return written(what, obj) if what in ("function", "method", "class") else None


def word(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.TextElement) -> nodes.reference | None:
    """Names of types that are no public names: those that the page of words explains."""
    if node.get("refdomain") != "py" or node.get("reftype") != "class":
        return None
    terms = env.get_domain("std")
    return terms.resolve_xref(env, node["refdoc"], app.builder, "term", node["reftarget"], node, text)


def _write_types_of_properties() -> None:
    """For properties autodoc looks at the type itself, and asks nobody: let it find the words."""
    classes = {base for found in OBJECTS.values() for base in getattr(found, "__mro__", ())}
    ours = [each for each in classes if each.__module__.startswith("clampz")]
    for member in (member for each in ours for member in vars(each).values()):
        getter = getattr(member, "fget", None) or getattr(member, "func", None)
        if inspect.isfunction(getter):
            returns = _unquoted(_function(getter).returns) or inspect.Signature.empty
            getter.__annotations__ = {}
            getter.__signature__ = inspect.signature(getter).replace(return_annotation=returns)  # type: ignore[attr-defined]


def _one_signature_each() -> None:
    """Overloads are for type checkers: people read what is returned when."""
    analyze = ModuleAnalyzer.analyze

    def without_overloads(self: ModuleAnalyzer) -> None:
        analyze(self)
        self.overloads = {}

    ModuleAnalyzer.analyze = without_overloads  # type: ignore[method-assign]


def setup(app: Sphinx) -> dict[str, bool]:
    _write_types_of_properties()
    _one_signature_each()
    app.connect("autodoc-process-signature", process)
    app.connect("missing-reference", word)
    return {"parallel_read_safe": True}
