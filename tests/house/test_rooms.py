"""The Python rooms: calls go downwards, and no room reaches into another's private parts.

``python tests/house/test_rooms.py`` prints who imports whom, and what the checks count.
"""

import ast
import re
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "radabound_fast"
GUARDS = {
    "ConfirmedSearch",
    "DeclaredSearch",
    "FixedSequence",
    "GuessAndCheck",
    "Guard",
    "HaltingGuard",
    "Ladder",
    "GuessGuard",
    "MeanGuard",
    "RadaBound",
    "RemoteGuard",
    "SignedGuard",
    "SignedSequence",
    "Thresholdout",
    "UnionSequence",
}
# of NamedTuple, of argparse's types, and what Python itself calls so
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
PUBLIC_UNDERSCORES = {
    "_ArgumentGroup",
    "_asdict",
    "_replace",
    "_make",
    "_fields",
    "_repr_html_",
    "_exit",
    "_getframe",
}
pytestmark = pytest.mark.source


@cache
def floors():
    """The rooms of each floor, the lowest first, as CONTRIBUTING.md lists them."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```floors\n(.*?)```", text, re.S)
    return [line.split("#")[0].split() for line in block.splitlines()]


@cache
def sources():
    """Every Python file with its tree."""
    return {
        path.relative_to(PACKAGE): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def nodes(tree):
    """Every node of a file's tree."""
    return list(ast.walk(tree))


def room_of(path):
    return path.parts[0].removesuffix(".py")


def imported(path, tree):
    """Modules of the package that a file imports when it runs, with the line of each."""
    for node in without_types(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parent.parts[: len(path.parts) - node.level]
            yield ".".join([*base, node.module or ""]).strip("."), node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "radabound_fast":
            for alias in node.names:
                yield homes().get(alias.name) or alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module.startswith("radabound_fast."):
            yield node.module.removeprefix("radabound_fast."), node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("radabound_fast."):
                    yield alias.name.removeprefix("radabound_fast."), node.lineno


def without_types(tree):
    """Every node that is not for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from without_types(node)


@cache
def homes():
    tree = sources()[Path("__init__.py")]
    for node in nodes(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
            return ast.literal_eval(node.value)
    raise AssertionError("radabound_fast/__init__.py has no _HOMES")


def upward_imports():
    """Imports of a room on a floor above, or of another room on the same floor."""
    level = {room: number for number, rooms in enumerate(floors()) for room in rooms}
    for path, tree in sources().items():
        here = room_of(path)
        if here in ("__init__", "__main__"):
            continue
        for module, line in imported(path, tree):
            there = module.split(".")[0]
            if there in ("__version__", here):
                continue
            if level[there] >= level[here]:
                yield f"{path}:{line} imports {module}"


def circles():
    """Files that import each other when they are imported, the first such circle.

    Between rooms there is none, even in functions, since imports go downwards; within a room a
    function may import a file that is above its own.
    """
    files = {".".join(path.with_suffix("").parts): path for path in sources()}
    graph = defaultdict(set)
    for path, tree in sources().items():
        if path.name == "__init__.py":  # a package's front door may show what is in it
            continue
        name = ".".join(path.with_suffix("").parts)
        at_once = ast.Module([node for node in tree.body if not isinstance(node, DEFINITIONS)], [])
        graph[name] = {module for module, _ in imported(path, at_once) if module in files}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield " -> ".join(error.args[1])


def asks_for_guards():
    """isinstance, issubclass and type() on guards, outside guards/."""
    for path, tree in sources().items():
        if room_of(path) == "guards":
            continue
        for node in nodes(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "isinstance",
                "issubclass",
            ):
                named = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
                if named & GUARDS:
                    yield f"{path}:{node.lineno} {ast.unparse(node)}"


def private_reads():
    """Attributes with an underscore that belong to objects of another room."""
    own = defaultdict(set)
    for path, tree in sources().items():
        for node in nodes(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                own[room_of(path)].add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                own[room_of(path)].add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own[room_of(path)].add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                own[room_of(path)].add(node.value)  # of __slots__
    for path, tree in sources().items():
        for node in nodes(tree):
            if (
                isinstance(node, ast.Attribute)
                and node.attr.startswith("_")
                and not node.attr.startswith("__")
                and node.attr not in PUBLIC_UNDERSCORES
                and ast.unparse(node.value) not in ("self", "cls", "super()")
                and node.attr not in own[room_of(path)]
            ):
                yield f"{path}:{node.lineno} {ast.unparse(node)}"


def fragments():
    """Docstrings that do not stand alone."""
    starts = ("Of ", "As ", "Those ", "That ", "And ", "The same ")
    for path, tree in sources().items():
        for node in nodes(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                text = (ast.get_docstring(node) or "").lstrip()
                if text.startswith(starts):
                    yield f"{path}:{getattr(node, 'lineno', 1)} {text.splitlines()[0]}"


def names_that_say_nothing():
    """Names for which the field has a word: released, queried, stored, argument, result."""
    words = {"told", "asked", "kept", "given", "found", "made", "taken"}
    for path, tree in sources().items():
        for node in nodes(tree):
            match node:
                case (
                    ast.Name(id=name, ctx=ast.Store())
                    | ast.Attribute(attr=name, ctx=ast.Store())
                    | ast.arg(arg=name)
                    | ast.FunctionDef(name=name)
                    | ast.ClassDef(name=name)
                ) if words & set(name.lower().split("_")):
                    yield f"{path}:{node.lineno} {name}"


CHECKS = {
    "imports that go upwards": upward_imports,
    "circles of files": circles,
    "isinstance on a guard outside guards/": asks_for_guards,
    "reads of another room's private attributes": private_reads,
    "docstrings that do not stand alone": fragments,
    "names that say nothing": names_that_say_nothing,
}


@pytest.mark.parametrize("what", CHECKS)
def test_there_are_no(what):
    places = list(CHECKS[what]())
    assert not places, f"{len(places)} {what}:\n" + "\n".join(places)


def test_every_room_is_on_a_floor():
    rooms = {room_of(path) for path in sources()} - {"__init__", "__main__"}
    assert rooms == {room for floor in floors() for room in floor}


def test_what_is_forbidden_would_be_seen(monkeypatch):
    bad = (
        "from radabound_fast.cli import main\n"
        "def f(holdout, x_given):\n"
        '    """Of a holdout."""\n'
        "    return isinstance(x_given, (int, DeclaredSearch)), holdout._hidden_here\n"
    )
    home = Path("__init__.py")
    only = {home: sources()[home], Path("rows/bad.py"): ast.parse(bad)}
    monkeypatch.setitem(globals(), "sources", lambda: only)
    counts = {what: sum("bad.py" in line for line in check()) for what, check in CHECKS.items()}
    counts.pop("circles of files")
    assert set(counts.values()) == {1}


if __name__ == "__main__":
    for path, tree in sources().items():
        rooms = sorted({module for module, _ in imported(path, tree)})
        print(f"{path!s:36} {' '.join(rooms)}")
    for what, check in CHECKS.items():
        places = list(check())
        print(f"\n{len(places)} {what}", *places, sep="\n  ")
