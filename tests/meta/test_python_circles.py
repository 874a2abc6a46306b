# SPDX-License-Identifier: Apache-2.0
"""No module of the Python package imports itself through others.

Imports inside functions count as well, since they only delay a circle. Imports for type checkers do
not count, since they do not run.
"""

import ast

from tree import ROOT

PACKAGE = ROOT / "python" / "reprise"


def modules(package):
    """Returns the files of a package by module name, with the stubs of extension modules."""
    found = {}
    for path in sorted(package.rglob("*.py*")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        if path.suffix in (".py", ".pyi"):
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def is_type_checking(node):
    return isinstance(node, ast.If) and any(
        getattr(part, "id", getattr(part, "attr", "")) == "TYPE_CHECKING"
        for part in ast.walk(node.test))


def statements(node):
    """Yields all import statements below a node that can run."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        elif is_type_checking(child):
            for other in child.orelse:
                yield from statements(ast.Module([other], []))
        else:
            yield from statements(child)


def imports(name, path, known):
    """Yields the modules of the package that a module imports."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for statement in statements(ast.parse(path.read_text())):
        if isinstance(statement, ast.Import):
            targets = [alias.name for alias in statement.names]
        else:
            above = package[:len(package) - statement.level + 1] if statement.level else []
            base = ".".join(above + ([statement.module] if statement.module else []))
            # `from package import name` imports the module of that name, if there is one.
            targets = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base
                       for alias in statement.names]
        yield from (target for target in targets if target in known and target != name)


def circles(graph):
    """Returns the circles of a graph, each as a list of modules."""
    done, found = set(), []

    def walk(name, path):
        if name in path:
            found.append(path[path.index(name):] + [name])
        elif name not in done:
            for target in sorted(graph[name]):
                walk(target, path + [name])
            done.add(name)

    for name in sorted(graph):
        walk(name, [])
    return found


def graph_of(package):
    known = modules(package)
    return {name: set(imports(name, path, known)) for name, path in known.items()}


def test_modules_have_no_import_cycles():
    found = [" -> ".join(circle) for circle in circles(graph_of(PACKAGE))]
    assert not found, "circles of imports:\n" + "\n".join(found)


def test_an_import_cycle_is_found(tmp_path):
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").write_text("from p import a\n")
    (package / "a.py").write_text("def f():\n    from . import b\n")
    (package / "b.py").write_text("try:\n    import p.c\nexcept ImportError:\n    pass\n")
    (package / "c.py").write_text("from p.a import f\n")

    assert circles(graph_of(package)) == [["p.a", "p.b", "p.c", "p.a"]]


def test_imports_for_type_checkers_do_not_count(tmp_path):
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
                                  "    from p import b\nelse:\n    b = None\n")
    (package / "b.py").write_text("from p import a\n")

    assert circles(graph_of(package)) == []
