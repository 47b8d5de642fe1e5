"""What can be trusted: random problems, faults on purpose, damaged files, and mistakes in the code.

    python -m bench.trust soak [--minutes 60] [--problems 10000] [--first 0] [--failed]
    python -m bench.trust replay 4711
    python -m bench.trust faults [--trials 300] [--first 0] [--only "kill −9"]
    python -m bench.trust fuzz [--minutes 10] [--first 0] [--only model]
    python -m bench.trust replay-file bench/findings/model.4711.model
    python -m bench.trust mutants [--trials 200] [--first 0]
    python -m bench.trust report

Results are appended to bench/trust*.jsonl, inputs that were not dealt with properly are stored in
bench/findings/ (none of them is committed), and `report` writes bench/TRUST.md from all of them.
"""

import argparse
import json
from pathlib import Path

from bench import trust_faults, trust_fuzz, trust_mutants, trust_soak
from bench.trust_common import FOLDER

REPORT = FOLDER / "TRUST.md"


def report() -> str:
    """Return the text of bench/TRUST.md."""
    modules = trust_soak, trust_faults, trust_fuzz, trust_mutants
    sections = [module.report() for module in modules]
    return "\n\n".join(["# What can be trusted", *(text.strip() for text in sections)]) + "\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Random problems, faults, and damaged files.")
    commands = parser.add_subparsers(dest="command", required=True)
    soak, faults, fuzz = (commands.add_parser(name) for name in ("soak", "faults", "fuzz"))
    soak.add_argument("--minutes", type=float, default=60.0)
    soak.add_argument("--problems", type=int, default=10_000)
    soak.add_argument("--failed", action="store_true", help="run those again that have failed")
    faults.add_argument("--trials", type=int, default=300)
    faults.add_argument("--only", choices=trust_faults.FAULTS)
    fuzz.add_argument("--minutes", type=float, default=10.0)
    fuzz.add_argument("--only", choices=trust_fuzz.READERS)
    mutants = commands.add_parser("mutants")
    mutants.add_argument("--trials", type=int, default=200)
    for command in (soak, faults, fuzz, mutants):
        command.add_argument("--first", type=int, default=0)
    commands.add_parser("replay").add_argument("number", type=int)
    commands.add_parser("replay-file").add_argument("path", type=Path)
    commands.add_parser("report")
    given = parser.parse_args(arguments)
    if given.command == "soak" and given.failed:
        trust_soak.soak_again(given.minutes)
    elif given.command == "soak":
        numbers = range(given.first, given.first + given.problems)
        trust_soak.soak(given.minutes, numbers, {})
    elif given.command == "faults":
        trust_faults.inject(given.trials, given.first, given.only)
    elif given.command == "fuzz":
        trust_fuzz.fuzz(given.minutes, given.first, given.only)
    elif given.command == "mutants":
        trust_mutants.hunt(given.trials, given.first)
    elif given.command == "replay":
        print(json.dumps(trust_soak.judged(given.number), indent=1))
    elif given.command == "replay-file":
        print(trust_fuzz.replay(given.path))
    else:
        REPORT.write_text(report(), encoding="utf-8")
        print(report())


if __name__ == "__main__":
    main()
