"""What a user may import is little, and can be found.

``python tests/house/test_surface.py`` prints how many names each package lists.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import ombud

SOURCE = Path(ombud.__file__).parent
MOST_NAMES = 200


def listed() -> dict[str, list[str]]:
    """Return the names that each package lists."""
    found = {}
    for path in sorted(SOURCE.rglob("__init__.py")):
        name = ".".join(path.parent.relative_to(SOURCE.parent).parts)
        if names := getattr(importlib.import_module(name), "__all__", []):
            found[name] = list(names)
    return found


def distinct(packages: dict[str, list[str]]) -> set[int]:
    """Return what the names stand for; what two packages list is one thing."""
    return {
        id(getattr(importlib.import_module(p), n)) for p, names in packages.items() for n in names
    }


def test_few_names_are_public() -> None:
    packages = listed()
    assert len(distinct(packages)) <= MOST_NAMES, {p: len(names) for p, names in packages.items()}


def test_what_a_package_lists_is_in_its_dir() -> None:
    for package, names in listed().items():
        missing = set(names) - set(dir(importlib.import_module(package)))
        assert not missing, f"{package} does not show {missing}"


# A page of research, which looks inside the probes and says so by its imports.
INSIDE = {"histories_and_futures.py"}
CODE = re.compile(r"^ *(?:>>> )?from (ombud[\w.]*) import (?:\(([^)]*)\)|([\w, ]+))", re.MULTILINE)


def test_documentation_imports_what_packages_list() -> None:
    root = SOURCE.parents[1]
    pages = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "examples").rglob("*.py")]
    taught = [
        (page.name, module, name)
        for page in pages
        if page.name not in INSIDE
        for module, *names in CODE.findall(page.read_text(encoding="utf-8"))
        for name in re.findall(r"\w+", " ".join(names))
    ]
    public = {package: set(names) for package, names in listed().items()}
    public["ombud.metrics"] |= set(dir(importlib.import_module("ombud.metrics")))
    wrong = [one for one in taught if one[2] not in public.get(one[1], ())]
    assert len(taught) > 50 and not wrong, wrong


def test_every_registered_metric_is_shown_among_the_metrics() -> None:
    from ombud import metrics, registry

    known = [registry.get("metric", name).__name__ for name in registry.names("metric")]
    alone = {name for name in known if known.count(name) == 1}
    assert "Suppression" in alone <= set(dir(metrics))


ONE_MEANING = {
    "k": "int", "n": "int", "rng": "Generator", "seed": "int", "level": "float",
    "replicates": "int", "permutations": "int",
}  # fmt: skip
OTHER_NAMES = {"random_state", "generator", "top_k", "topk", "top_n", "num", "n_boot", "confidence"}


def signatures() -> Iterator[tuple[str, inspect.Signature]]:
    """Yield every public function, class and method, with what it takes."""
    for package, names in listed().items():
        for name in names:
            thing = getattr(importlib.import_module(package), name)
            found = {f"{package}.{name}": thing}
            if inspect.isclass(thing):
                found |= {f"{package}.{name}.{n}": f for n, f in vars(thing).items() if n[0] != "_"}
            for where, one in found.items():
                if inspect.isclass(one) or inspect.isfunction(one):
                    with suppress(ValueError):  # a protocol or an alias has none
                        yield where, inspect.signature(one)


def options() -> Iterator[tuple[str, str, str]]:
    """Yield what each registered thing takes: of what, the argument and its type."""
    from ombud import registry

    for kind in registry.KINDS:
        for name in registry.names(kind):
            for one in registry.arguments(kind, name):
                yield f"{kind} {name}", one.name, one.type


def test_an_argument_has_one_name_and_a_name_one_meaning() -> None:
    public = [
        (where, name, str(given.annotation))
        for where, signature in signatures()
        for name, given in signature.parameters.items()
    ]
    wrong = [
        f"{where}: {name} is {kind}"
        for where, name, kind in [*public, *options()]
        if name in OTHER_NAMES or ONE_MEANING.get(name, "") not in kind
    ]
    # Depth is k where something is configured, and n where a system is asked for a list.
    wrong += [f"{where}: {name}" for where, name, _ in options() if name == "n"]
    wrong += [f"{w}: {name}" for w, name, _ in public if w.endswith(".recommend") and name == "k"]
    generators = [(w, name) for w, name, kind in public if kind.startswith("np.random.Generator")]
    wrong += [f"{where}: {name}" for where, name in generators if name != "rng"]
    assert not wrong and len(generators) > 2


if __name__ == "__main__":
    for package, names in listed().items():
        sys.stdout.write(f"{len(names):4} {package}\n")
    sys.stdout.write(f"{len(distinct(listed())):4} things in all\n")
