# SPDX-License-Identifier: Apache-2.0
"""The stubs of the extension match it: every name, and every signature that it reports."""

import ast
import inspect
import pathlib

import pytest
import reprise
from reprise import _core

STUBS = ast.parse((pathlib.Path(reprise.__file__).parent / "_core.pyi").read_text())
FUNCTIONS = {n.name: n for n in STUBS.body if isinstance(n, ast.FunctionDef)}
CLASSES = {n.name: n for n in STUBS.body if isinstance(n, ast.ClassDef)}
ALIASES = {"Address", "Array", "Limiter", "Sample", "Selector", "Stack"}
ASSIGNED = {t.id for n in STUBS.body if isinstance(n, ast.Assign) for t in n.targets} | {
    n.target.id for n in STUBS.body if isinstance(n, ast.AnnAssign)}


def members(node):
    """Returns the methods, properties and attributes of a class of the stubs, by name."""
    found = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
    found.update({n.target.id: n for n in node.body if isinstance(n, ast.AnnAssign)})
    return found


def public(names):
    return {n for n in names if not n.startswith("_")}


def of_stub(node, bound):
    """Returns (name, kind, has a default) of each parameter, without self or cls."""
    a = node.args
    positional = a.posonlyargs + a.args
    without = len(positional) - len(a.defaults)
    found = []
    for i, arg in enumerate(positional):
        kind = "positional only" if i < len(a.posonlyargs) else "either"
        found.append((arg.arg, kind, i >= without))
    if a.vararg:
        found.append((a.vararg.arg, "*", False))
    found += [(arg.arg, "keyword", default is not None)
              for arg, default in zip(a.kwonlyargs, a.kw_defaults)]
    if a.kwarg:
        found.append((a.kwarg.arg, "**", False))
    return found[1:] if bound else found


KINDS = {inspect.Parameter.POSITIONAL_ONLY: "positional only",
         inspect.Parameter.POSITIONAL_OR_KEYWORD: "either", inspect.Parameter.VAR_POSITIONAL: "*",
         inspect.Parameter.KEYWORD_ONLY: "keyword", inspect.Parameter.VAR_KEYWORD: "**"}


def of_object(obj):
    """Returns the same for an object of the extension; None if it has no text signature."""
    if getattr(obj, "__text_signature__", None) is None:
        return None
    parameters = list(inspect.signature(obj).parameters.values())
    return [(p.name, KINDS[p.kind], p.default is not p.empty)
            for p in parameters if p.name != "self"]


def test_names_of_the_module():
    there = public(vars(_core))
    assert there == public(set(FUNCTIONS) | set(CLASSES) | (ASSIGNED - ALIASES))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions(name):
    assert of_object(getattr(_core, name)) == of_stub(FUNCTIONS[name], False)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_members_of_classes(name):
    node, kind = CLASSES[name], getattr(_core, name)
    own = {n for n in dir(kind) if n not in dir(kind.__base__)}
    stub = {n for n in members(node) if n not in dir(kind.__base__)}
    assert public(own) == public(stub)
    private = {n for n in stub if n.startswith("_")}
    assert private <= set(dir(kind)), "the stubs have more than there is"


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_bases_of_classes(name):
    there = [base.__name__ for base in getattr(_core, name).__bases__ if base is not object]
    assert there == [base.id for base in CLASSES[name].bases]


METHODS = sorted((c, m) for c in CLASSES for m, n in members(CLASSES[c]).items()
                 if isinstance(n, ast.FunctionDef) and not m.startswith("_"))


@pytest.mark.parametrize("owner, method", METHODS)
def test_methods(owner, method):
    node, obj = members(CLASSES[owner])[method], getattr(_core, owner).__dict__[method]
    decorators = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
    if "property" in decorators:
        assert inspect.isdatadescriptor(obj)
        return
    static = "staticmethod" in decorators
    if static or "classmethod" in decorators:
        obj = getattr(getattr(_core, owner), method)
    says = of_object(obj)
    assert says is not None, f"{owner}.{method} does not tell its signature"
    assert says == of_stub(node, not static)


@pytest.mark.parametrize("name", sorted(n for n in CLASSES if of_object(getattr(_core, n))))
def test_constructors(name):
    assert of_object(getattr(_core, name)) == of_stub(members(CLASSES[name])["__init__"], True)


def test_the_package_is_marked_as_typed():
    assert (pathlib.Path(reprise.__file__).parent / "py.typed").exists()
