"""Bad input: every ValueError is still raised, and its message names argument, value and remedy."""

import re
from pathlib import Path

import error_messages
import jax
import numpy as np
import pytest

import jsvm

PACKAGE = Path(jsvm.__file__).parent
KNOWN = error_messages.FILE.read_text(encoding="utf-8").splitlines()


def literal(text: str) -> int:
    """Count the characters of a template that are not filled in."""
    return len(text.replace("{}", ""))


def covers(candidate: str, message: str) -> bool:
    """Tell whether a template makes a message, be it with more of it filled in."""
    pattern = ".*".join(map(re.escape, candidate.split("{}")))
    return 2 * literal(candidate) >= literal(message) and bool(re.fullmatch(pattern, message))


def test_no_message_was_lost():
    there = error_messages.strings(PACKAGE)
    lost = [
        message
        for message in KNOWN
        if message not in there and not any(covers(other, message) for other in there)
    ]
    assert not lost, "these messages of ValueErrors are gone:\n" + "\n".join(lost)


def test_every_message_is_listed():
    unknown = sorted(error_messages.raised(PACKAGE) - set(KNOWN))
    new = [message for message in unknown if not any(covers(message, known) for known in KNOWN)]
    hint = "new messages; list them with `python tests/error_messages.py`:\n"
    assert not new, hint + "\n".join(new)


def test_the_comparison_can_fail():
    assert covers("{}={} must be positive", "tol={} must be positive")
    assert not covers("{}", "tol={} must be positive")
    assert not covers("{}={} must be negative", "tol={} must be positive")
    assert error_messages.normalised("(004, eq. 1)") == error_messages.normalised(
        "(Glasmachers 2008, eq. 1)"
    )


# A call, and in the line below it the message: argument, value, remedy.
LINES = (Path(__file__).parent / "bad_inputs.txt").read_text(encoding="utf-8").splitlines()
BAD_INPUTS = {call: message.strip() for call, message in zip(LINES[::2], LINES[1::2], strict=True)}


@pytest.mark.parametrize("call", BAD_INPUTS)
def test_bad_input_says_what_to_do(call: str):
    X = np.arange(12.0).reshape(6, 2)
    y = np.array([-1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
    names = {name: getattr(jsvm, name) for name in jsvm.__all__}
    names |= {"np": np, "X": X, "y": y, "K": np.eye(6), "ones": np.ones(6)}
    names |= {"key": jax.random.key(0)}
    with pytest.raises(ValueError, match=r"[a-z]") as caught:
        eval(call, names)
    message = error_messages.normalised(str(caught.value))
    assert message == error_messages.normalised(BAD_INPUTS[call])
