"""``jsvm info``: what a model file holds."""

from pathlib import Path
from typing import Any

from jsvm.command import OK, options
from jsvm.io.model import Model, read_model

EXAMPLES = """  jsvm info heart.txt.model
  jsvm info --json heart.txt.model
"""


def run(arguments: list[str]) -> int:
    """Read the file and print a line for each fact."""
    parser = options.command_parser("info", "Tell what a LIBSVM model file holds.", EXAMPLES)
    parser.add_argument("model", type=Path, help="model file of jsvm or LIBSVM")
    given = parser.parse_intermixed_args(arguments)
    facts = _facts(read_model(given.model), given.model)
    if given.json:
        options.print_json(facts)
        return OK
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {number:g}" for key, number in value.items())
        print(f"{name.replace('_', ' '):<28} {value}")
    return OK


def _facts(model: Model, path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = {"type": model.svm_type, "kernel": model.kernel_type}
    if model.parameters:
        facts["kernel_parameters"] = model.parameters
    facts["support_vectors"] = model.coefficients.shape[1]
    if model.labels is not None and model.counts is not None:
        counts = zip(model.labels.tolist(), model.counts.tolist(), strict=True)
        facts["classes"] = len(model.labels)
        facts["support_vectors_of_class"] = dict(sorted(counts))
    examples = model.serials is not None
    facts["training_examples" if examples else "features"] = model.vectors.shape[1]
    has_probabilities = model.slopes is not None or model.density_marks is not None
    facts["probabilities"] = "yes" if has_probabilities else "no"
    facts["bytes"] = path.stat().st_size
    return facts
