"""Names for everything a plan can ask for, and the one door through which plugins come in.

Built-in things register with the same decorators as a plugin's. A plugin is a distribution with
one entry point::

    [project.entry-points."ombud"]
    mypack = "mypack._registry"

Its module is imported on the first look-up of a name that is not built in, and what it registers
is called ``mypack/thing``. ``OMBUD_PLUGINS=none`` turns plugins off.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, getdoc, signature
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError

from ombud.errors import RegistryError

if TYPE_CHECKING:
    from collections.abc import Iterator


KINDS = (
    "analysis", "distance", "metric", "moderator", "preset", "probe", "question", "recommender",
    "section", "source", "verdict", "world",
)  # fmt: skip
"""What can be registered: one decorator of the same name each."""

Factory = TypeVar("Factory", bound=Callable[..., Any])


@dataclass
class Plugin:
    """A distribution that offered things to ombud, and how that went."""

    name: str
    distribution: str
    module: str
    error: str = ""
    registered: list[str] = field(default_factory=list)


_things: dict[str, dict[str, Callable[..., Any]]] = {kind: {} for kind in KINDS}
_question_keys: dict[str, tuple[str, ...]] = {}
_plugins: dict[str, Plugin] = {}
_loaded = {"builtins": False, "plugins": False}
_prefix: list[str] = []


def register(kind: str, name: str) -> Callable[[Factory], Factory]:
    """Return a decorator that registers a class or function under a name.

    Parameters
    ----------
    kind
        One of `KINDS`.
    name
        Lower-case words joined by hyphens. Inside a plugin, ``plugin/`` is put before it.
    """
    if kind not in KINDS:
        raise RegistryError(f"kind {kind!r} is not one of {', '.join(KINDS)}")

    def decorate(factory: Factory) -> Factory:
        full = _full_name(name)
        known = _things[kind].get(full)
        if known is not None and known.__qualname__ != factory.__qualname__:
            raise RegistryError(
                f"{kind} {full!r} is registered twice: by {known.__module__}.{known.__qualname__} "
                f"and by {factory.__module__}.{factory.__qualname__}; rename one"
            )
        _things[kind][full] = factory
        if _prefix:
            _plugins[_prefix[-1]].registered.append(f"{kind}:{full}")
        if isinstance(factory, type):
            setattr(factory, "registered_name", full)  # noqa: B010 - any class may be registered
        return factory

    return decorate


def _full_name(name: str) -> str:
    return f"{_prefix[-1]}/{name}" if _prefix else name


def analysis(name: str) -> Callable[[Factory], Factory]:
    """Register an analysis: something computed beside the metrics, see `ombud.audits.Analysis`."""
    return register("analysis", name)


def metric(name: str) -> Callable[[Factory], Factory]:
    """Register a metric."""
    return register("metric", name)


def recommender(name: str) -> Callable[[Factory], Factory]:
    """Register a recommender."""
    return register("recommender", name)


def moderator(name: str) -> Callable[[Factory], Factory]:
    """Register a moderator."""
    return register("moderator", name)


def probe(name: str) -> Callable[[Factory], Factory]:
    """Register a probe: a counterfactual question, asked of one system."""
    return register("probe", name)


def distance(name: str) -> Callable[[Factory], Factory]:
    """Register a distance between two outcomes: zero or more, and zero for equal ones."""
    return register("distance", name)


def source(name: str) -> Callable[[Factory], Factory]:
    """Register a data source."""
    return register("source", name)


def world(name: str) -> Callable[[Factory], Factory]:
    """Register a simulated world."""
    return register("world", name)


def preset(name: str) -> Callable[[Factory], Factory]:
    """Register a preset: a class that completes a plan."""
    return register("preset", name)


def question(name: str, *keys: str) -> Callable[[Factory], Factory]:
    """Register a question: a function that declares what a report says about it.

    Parameters
    ----------
    name
        That of its preset.
    keys
        How the keys of its estimates begin: a report of other numbers does not call the function.
        Without any, every report does.
    """

    def decorate(factory: Factory) -> Factory:
        registered = register("question", name)(factory)
        _question_keys[_full_name(name)] = keys
        return registered

    return decorate


def question_keys(name: str) -> tuple[str, ...]:
    """Return how the keys of a question's estimates begin; none if every report asks it."""
    return _question_keys.get(name, ())


def verdict(name: str) -> Callable[[Factory], Factory]:
    """Register how the verdicts of a result are computed; ombud's own is called ``ombud``."""
    return register("verdict", name)


def section(name: str) -> Callable[[Factory], Factory]:
    """Register a section of the report: a function without arguments that returns a `Part`.

    The section stands in the report of each result that holds what it shows.

    Raises
    ------
    RegistryError
        If the function takes a result, as sections did before reports were declared.
    """

    def decorate(factory: Factory) -> Factory:
        if signature(factory).parameters:
            raise RegistryError(
                f"section {name!r}: {factory.__qualname__} takes arguments; a section is declared "
                "now. Return ombud.report.part(title, ...) from a function without arguments"
            )
        return register("section", name)(factory)

    return decorate


@contextmanager
def _registering_for(plugin: str) -> Iterator[None]:
    _prefix.append(plugin)
    try:
        yield
    finally:
        _prefix.pop()


def _load_builtins() -> None:
    if not _loaded["builtins"]:
        _loaded["builtins"] = True
        import_module("ombud._builtins")


def _load_plugin(entry: EntryPoint) -> None:
    distribution = entry.dist.name if entry.dist is not None else "an unknown distribution"
    plugin = Plugin(entry.name, distribution, entry.value)
    _plugins[entry.name] = plugin
    try:
        with _registering_for(entry.name):
            entry.load()
    except Exception as error:  # a plugin may fail in any way; the audit goes on without it
        plugin.error = f"{type(error).__name__}: {error}"
        warnings.warn(
            f"plugin {entry.name!r} of {distribution} could not be loaded ({plugin.error}); "
            "its names are missing. 'ombud plugins' shows all plugins.",
            stacklevel=4,
        )


def _load_plugins() -> None:
    if not _loaded["plugins"] and os.environ.get("OMBUD_PLUGINS", "") != "none":
        _loaded["plugins"] = True
        for entry in entry_points(group="ombud"):
            _load_plugin(entry)


def names(kind: str) -> tuple[str, ...]:
    """Return all registered names of a kind, plugins included, sorted."""
    _load_builtins()
    _load_plugins()
    return tuple(sorted(_things[kind]))


def plugins() -> tuple[Plugin, ...]:
    """Return the plugins found, those that failed included."""
    _load_builtins()
    _load_plugins()
    return tuple(_plugins.values())


def hint(name: object, known: Iterable[str]) -> str:
    """Return words that help who wrote a name that is not known.

    Examples
    --------
    >>> hint("amplifcation", ["amplification", "recall"])
    "did you mean 'amplification'?"
    >>> hint("x", ["amplification", "recall"])
    'known: amplification, recall'
    >>> hint("als", ["explicit-als", "implicit-als", "recall"])
    "did you mean 'explicit-als' or 'implicit-als'?"
    """
    some = list(known)
    near = get_close_matches(str(name), some, n=1, cutoff=0.85)
    near = near or [one for one in some if str(name).lower() in one.split("-")]
    near = near or get_close_matches(str(name), some, n=3)
    if near:
        return f"did you mean {' or '.join(repr(one) for one in near)}?"
    return f"known: {', '.join(some) or 'none'}"


def get(kind: str, name: str) -> Callable[..., Any]:
    """Return what is registered under a name.

    Raises
    ------
    RegistryError
        If nothing is; the message names the nearest.
    """
    _load_builtins()
    if not isinstance(name, str):  # a plan may hold anything
        raise RegistryError(f"the name of a {kind} is a word; found {name!r:.80}")
    if name not in _things[kind]:
        _load_plugins()
    result = _things[kind].get(name)
    if result is None:
        raise RegistryError(f"no {kind} is called {name!r}; {hint(name, names(kind))}")
    return result


def create(kind: str, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
    """Build what is registered under a name, from plain values, with all faults in one error.

    Parameters
    ----------
    kind, name
        What to build.
    arguments
        Its arguments, as a plan or a saved result holds them.
    """
    factory = get(kind, name)
    given = dict(arguments or {})
    takes = signature(factory).parameters
    faults: list[str] = []
    if not any(p.kind is Parameter.VAR_KEYWORD for p in takes.values()):
        unknown = sorted(set(given) - set(takes))
        if unknown:
            known = ", ".join(takes) or "no arguments"
            near = [close for one in unknown for close in get_close_matches(one, takes, n=1)]
            meant = f" (did you mean {' and '.join(map(repr, near))}?)" if near else ""
            faults.append(f"it does not take {', '.join(unknown)}{meant}; it takes {known}")
    for index, parameter in takes.items():
        needed = parameter.default is Parameter.empty and parameter.kind in _NAMED
        if needed and index not in given:
            faults.append(f"it needs {index}")
    for index, hint in _hints(factory).items():
        if index in given and index in takes:
            given[index] = _checked(index, hint, given[index], faults)
    if faults:
        raise RegistryError(f"{kind} {name!r}: {'; '.join(faults)}")
    try:
        return factory(**given)
    except (TypeError, ValueError) as error:
        raise RegistryError(f"{kind} {name!r}: {error}") from error


_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class Argument:
    """An argument of what is registered: its name, type and default, in words."""

    name: str
    type: str
    needed: bool
    default: str


def arguments(kind: str, name: str) -> tuple[Argument, ...]:
    """Return what the named thing takes in a plan; of a preset, its options."""
    factory = get(kind, name)
    if kind == "preset":
        options = getattr(factory, "options", None)
        if options is None:
            return ()
        factory = options
    result = []
    for one in signature(factory).parameters.values():
        if one.kind not in _NAMED or one.name in {"self", "cls"}:
            continue
        needed = one.default is Parameter.empty
        kind_of = "any" if one.annotation is Parameter.empty else _type_text(one.annotation)
        default = "" if needed else _default_text(factory, one)
        result.append(Argument(one.name, kind_of, needed, default))
    return tuple(result)


def _default_text(factory: Callable[..., Any], argument: Parameter) -> str:
    value = getattr(argument.default, "value", argument.default)
    known: Mapping[str, Any] = getattr(factory, "model_fields", {})
    if is_dataclass(factory):
        known = {one.name: one for one in fields(factory)}
    make = known[argument.name].default_factory if argument.name in known else None
    if callable(make):
        value = make()
        if is_dataclass(value):  # settings of their own, too many to print
            return f"{type(value).__name__}()"
    return f"{value!r:.80}"


def _type_text(annotation: Any) -> str:
    if get_origin(annotation) is Annotated:  # limits are of the description
        annotation = get_args(annotation)[0]
    text = annotation if isinstance(annotation, str) else ""
    if not text:
        plain = isinstance(annotation, type) and not get_args(annotation)
        text = annotation.__name__ if plain else str(annotation)
    return text.replace("typing.", "")


def argument_types(kind: str, name: str) -> dict[str, Any]:
    """Return the types of the arguments of what is registered under a name.

    Those of a preset are the types of its options.
    """
    factory = get(kind, name)
    options = getattr(factory, "options", None) if kind == "preset" else None
    return _hints(factory if options is None else options)


def _hints(factory: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of the arguments; none where they cannot be resolved."""
    has_fields = is_dataclass(factory) or hasattr(factory, "model_fields")
    has_init = isinstance(factory, type) and not has_fields
    try:
        return get_type_hints(factory.__init__ if has_init else factory, include_extras=True)
    except NameError:  # a type imported for the type checker alone
        return {}


def _checked(place: str, hint: Any, value: Any, faults: list[str]) -> Any:
    """Return the value as its type wants it, or note a fault."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(
            hint, config=ConfigDict(arbitrary_types_allowed=True)
        )
    except PydanticSchemaGenerationError:
        return value
    except PydanticUserError:  # a type with a configuration of its own
        adapter = TypeAdapter(hint)
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        for e in error.errors():
            inside = e["loc"] if isinstance(value, Mapping) else ()
            where = ".".join([place, *map(str, inside)])
            near = get_close_matches(str(inside[-1]), _fields_of(hint), n=1) if inside else []
            meant = f"; did you mean {near[0]!r}?" if near and "nexpected" in e["msg"] else ""
            faults.append(f"{where}: {e['msg']} (found {e['input']!r:.80}){meant}")
        return value


def _fields_of(hint: Any) -> list[str]:
    return [field.name for field in fields(hint)] if is_dataclass(hint) else []


def describe(kind: str, name: str) -> str:
    """Return the first line of the documentation of what is registered under a name."""
    return (getdoc(get(kind, name)) or "").split("\n", 1)[0]
