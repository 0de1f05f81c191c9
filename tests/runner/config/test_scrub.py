"""A log that others read carries no address, no secret, no home directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilewatch.runner.config.scrub import scrub


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("Looking in indexes: https://user:pass@internal.example/simple", "internal.example"),
        ("postgresql://admin:hunter22@db/compilewatch is down", "hunter22"),
        ("Authorization: Bearer abcdefghijkl", "abcdefghijkl"),
        ("api_key = 'k-1234567'", "k-1234567"),
        ("MY_TOKEN=abcdef", "abcdef"),
        ("using hf_abcdefghijklmnop now", "hf_abcdefghijklmnop"),
        ("AKIAABCDEFGHIJKLMNOP", "AKIAABCDEFGHIJKLMNOP"),
    ],
)
def test_secrets_and_addresses_go(text, hidden):
    assert hidden not in scrub(text, {})


def test_values_of_secret_variables_go_wherever_they_appear():
    text = scrub("the value was s3cr3t-value here", {"WANDB_API_KEY": "s3cr3t-value", "COLOR": "value"})
    assert text == "the value was [hidden] here"


def test_what_explains_a_failure_stays():
    text = 'File "model.py", line 7, in forward\n\tRuntimeError: mat1 and mat2 shapes: 3x4 and 5x6 (token 12)'
    assert scrub(text, {}) == text


def test_the_home_directory_becomes_a_tilde():
    home = Path.home()
    assert scrub(f'File "{home}/project/model.py"', {}) == 'File "~/project/model.py"'


def test_control_characters_go():
    assert scrub("\x1b[31mred\x1b[0m\rover\x00\ttab\n", {}) == "[31mred[0mover\ttab\n"
