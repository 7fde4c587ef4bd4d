"""Build the site: the pages of this folder, those at the root of the project, and the API.

python docs/site.py FOLDER    write it to FOLDER/html; any warning is an error
"""

from __future__ import annotations

import ast
import re
import shutil
import sys
from functools import cache
from importlib import import_module
from inspect import Parameter, getdoc, isclass, isroutine, signature
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin

from docstrings import as_markdown

HERE = Path(__file__).parent
ROOT = HERE.parent
PACKAGES = (
    "audits", "data", "metrics", "systems", "report", "stats", "taxonomy", "text", "link", "probes",
    "tuning", "worlds", "testing", "app", "registry", "errors",
)  # fmt: skip
"""What users may import; a test keeps it complete."""
ROOT_PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")


_LOADED = re.compile(r"""<(?:script|link|img|iframe)[^>]*?(?:src|href)=["'](?:https?:)?//[^"']+""")


def build(folder: Path) -> int:
    """Write the site and return an exit code; not 0 if there was any warning."""
    from sphinx.cmd.build import main

    source, target = folder / "source", folder / "html"
    write_source(source)
    code = main(
        ["-b", "html", "-q", "-W", "--keep-going", "-d", str(folder / "trees")]
        + [str(source), str(target)]
    )
    fetched = [f"{page.name}: {found}" for page in target.rglob("*.html") for found in loaded(page)]
    sys.stderr.writelines(f"{line} is fetched when the page is read\n" for line in fetched)
    return code or bool(fetched)


def loaded(page: Path) -> list[str]:
    """Return what a page would fetch from elsewhere; links that a reader follows are none."""
    return _LOADED.findall(page.read_text(encoding="utf-8"))


def write_source(source: Path) -> None:
    """Write everything that Sphinx reads into one folder."""
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(HERE, source, ignore=shutil.ignore_patterns("__pycache__", "_build"))
    there = [name for name in ROOT_PAGES if (ROOT / name).is_file()]
    for name in there:
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        (source / name.lower()).write_text(_without_files(text), encoding="utf-8")
    for page in source.glob("*.md"):
        page.write_text(_without_files(page.read_text(encoding="utf-8")), encoding="utf-8")
    listed = "\n".join(Path(name.lower()).stem for name in there)
    (source / "project.md").write_text(
        f"# The project\n\n```{{toctree}}\n:titlesonly:\n\n{listed}\n```\n"
    )
    (source / "api").mkdir()
    for name in PACKAGES:
        (source / "api" / f"{name}.md").write_text(api_page(name), encoding="utf-8")
    (source / "api" / "index.md").write_text(_index(), encoding="utf-8")


def _without_files(text: str) -> str:
    """Return a page whose links to files of the project are their names, or lead to its page."""
    for name in ROOT_PAGES:
        text = re.sub(rf"\]\((?:\.\./)?{name}\)", f"]({name.lower()})", text)
    return re.sub(r"\[([^\]]*)\]\((?:\.\./|LICENSE|CITATION|examples/|src/)[^)]*\)", r"\1", text)


def _index() -> str:
    first = import_module("ombud")
    rows = [f"| `{n}` | {_first(getattr(first, n))} |" for n in first.__all__ if n[0] != "_"]
    return (
        "# What may be imported\n\nWhat the packages list; everything else is internal and may "
        "change without a word. From `ombud` itself:\n\n| name | what it is |\n|---|---|\n"
        + "\n".join(rows)
        + "\n\n```{toctree}\n:titlesonly:\n\n"
        + "\n".join(PACKAGES)
        + "\n```\n"
    )


def _first(thing: Any) -> str:
    return _text(thing).split("\n\n", 1)[0].replace("\n", " ").replace("|", "\\|")


def _text(thing: Any) -> str:
    return as_markdown(getdoc(thing) or "", "../references.md")


def api_page(package: str) -> str:
    """Return what may be imported from a package, with its documentation."""
    module = import_module(f"ombud.{package}")
    parts = [f"# ombud.{package}\n", _text(module), ""]
    for name in _public(module):
        thing = getattr(module, name)
        parts.append(f"## {name}\n")
        if isclass(thing) or isroutine(thing):
            parts += [_call(name, thing), _text(thing), ""]
        else:
            told = _told(module, name) or _shown(thing)
            parts += [as_markdown(told, "../references.md"), ""]
        if isclass(thing):
            parts += _members(name, thing)
    return "\n".join(parts)


def _public(module: ModuleType) -> list[str]:
    """Return what a package lists, or what a plain module defines without an underscore."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    own = (name for name, thing in vars(module).items() if _is_own(module, name, thing))
    return sorted(own)


def _is_own(module: ModuleType, name: str, thing: Any) -> bool:
    constant = name.isupper() and not isinstance(thing, ModuleType)
    return name[0] != "_" and (constant or getattr(thing, "__module__", "") == module.__name__)


def _shown(thing: Any) -> str:
    if get_origin(thing) is not None:
        return f"A type: `{thing}`.".replace("typing.", "")
    return f"A value: `{thing!r}`." if isinstance(thing, int | float | str) else "A value."


def _told(module: ModuleType, name: str) -> str:
    """Return the text below the assignment of a value, wherever in the package it is."""
    home = Path(module.__file__ or "")
    for path in sorted(home.parent.rglob("*.py")) if home.name == "__init__.py" else [home]:
        if name in _told_in(path):
            return _told_in(path)[name]
    return ""


@cache
def _told_in(path: Path) -> dict[str, str]:
    """Return the texts below the assignments of a file by what is assigned."""
    told: dict[str, str] = {}
    for one, after in pairwise(ast.parse(path.read_text(encoding="utf-8")).body):
        targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            for target in targets:
                if isinstance(target, ast.Name):
                    told.setdefault(target.id, str(after.value.value))
    return told


def _call(name: str, thing: Any) -> str:
    """Return how it is called; nothing for what cannot be."""
    try:
        told = signature(thing)
    except (TypeError, ValueError):
        return ""
    shown = [p.replace(default=_Shown(p.default)) for p in told.parameters.values()]
    text = str(told.replace(parameters=shown))
    text = re.sub(r"""(: |-> )(['"])(.*?)\2""", r"\1\3", text)  # annotations are kept as strings
    text = re.sub(r"ForwardRef\('([^']*)'\)", r"\1", text)
    return f"```python\n{name}{text}\n```\n"


class _Shown:
    """A default as a reader sees it: no addresses in memory, no long values."""

    def __new__(cls, value: Any) -> Any:
        return value if value is Parameter.empty else super().__new__(cls)

    def __init__(self, value: Any) -> None:
        text = repr(value)
        self.text = text if "<" not in text and len(text) < 60 else "..."

    def __repr__(self) -> str:
        return self.text


def _members(owner: str, thing: type) -> list[str]:
    parts = []
    for name, member in vars(thing).items():
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if name.startswith("_") or not (isroutine(plain) or isinstance(plain, property)):
            continue
        if not getdoc(plain):
            continue
        parts.append(f"### {owner}.{name}\n")
        if not isinstance(plain, property):
            parts.append(_call(name, plain))
        parts += [_text(plain), ""]
    return parts


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1])))
