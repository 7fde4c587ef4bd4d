"""What code asks of an object is declared: attributes are not looked up by their names."""

from __future__ import annotations

import ast
from pathlib import Path

import ombud

SOURCE = Path(ombud.__file__).parent

# Objects of others, told apart by what they have: users' own systems, frames and registered
# things, libraries, and what a thread keeps for itself.
FOREIGN = {
    "app/store.py": {"db"},
    "audits/plan.py": {"model_fields"},
    "audits/presets.py": {"registered_name"},
    "audits/quick.py": {"column_names", "columns"},
    "audits/result.py": {"spec"},
    "app/web/result_pages.py": {"O_NONBLOCK"},
    "files.py": {"O_BINARY", "O_NONBLOCK"},
    "audits/backends/spark.py": {"_stackTrace"},
    "cli/data.py": {"exclusions"},
    "data/dataset.py": {"columns", "get_ipython", "kernel"},
    "cli/describe.py": {"of"},
    "link/_streams.py": {"read1"},
    "probes/distances.py": {"name"},
    "probes/training.py": {"fit", "score"},
    "registry.py": {"model_fields", "options", "value"},
    "report/pdf.py": {"geteuid"},
    "systems/detectors/transformer.py": {"model_max_length"},
    "systems/moderators/detoxify.py": {"tokenizer"},
    "systems/moderators/huggingface.py": {
        "_commit_hash",
        "_name_or_path",
        "config",
        "model",
        "model_max_length",
        "tokenizer",
    },
    "systems/moderators/service.py": {"registered_name"},
    "systems/moderators/sklearn_pipeline.py": {"predict_proba"},
    "systems/own.py": {
        "name",
        "__name__",
        "recommend",
        "moderate",
        "fit",
        "columns",
        "bind",
        "predict",
        "predicts_ratings",
        "recommends_seen",
        # Of scikit-learn, Hugging Face and implicit.
        "classes_",
        "config",
        "id2label",
        "model",
        "predict_proba",
        "task",
        "user_factors",
    },
    "testing/_options.py": {"registered_name"},
    "testing/metrics.py": {"frozen", "__dataclass_params__"},
    "text/matching.py": {"to_list", "tolist", "to_pylist"},
}


def test_attributes_of_our_own_objects_are_declared() -> None:
    looked_up: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        text = path.read_text("utf-8")
        if "getattr(" not in text and "hasattr(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in {"getattr", "hasattr"}
                and isinstance(node.args[1], ast.Constant)
            ):
                looked_up.setdefault(name, set()).add(node.args[1].value)
    undeclared = {name: seen - FOREIGN.get(name, set()) for name, seen in looked_up.items()}
    assert {name: seen for name, seen in undeclared.items() if seen} == {}
