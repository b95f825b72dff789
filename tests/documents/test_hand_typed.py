"""Numbers typed by hand in the prose of docs/results."""

import pytest

from scripts.prose.hand_typed import find_hand_typed


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Figures 6.2 and 6.3 of 2021, N = 100, 200 and 500, `x=3`, VIS-5-10", []),
        ("[print: 0.89] of [setting: 100 runs], Table D.1, section 3.1.3", []),
        ("it is .42, or −3 %, ½ at 1,000 steps", [".42", "−3", "½", "1,000"]),
        ("accuracy = 0.95", ["0.95"]),
        ("![window 3](a-5.png), [0.4](b.md#c-6)", ["3", "0.4"]),
        ("| 0.5 |", ["0.5"]),
        ("# RMSE of 0.42\n\n*Figure 2: 0.3*", ["0.42", "0.3"]),
        (
            "    RMSE 0.42\n    runner study a --jobs 2 # 7\n    OUT=a runner b  # 8 s\n",
            ["0.42", "7", "8"],
        ),
        ("`0.42` and `x` 5 `y`, `RMSE = 0.4`, $0.3$, $x^2$", ["0.42", "5", "0.4", "0.3"]),
        ("p = 0.03, z = 2, log p = −97, N = 3", ["0.03", "2", "−97"]),
        ("Gallego 0.84, Table 2.4, [12-15], 784-200-200, ⅔", ["0.84", "12", "-15", "⅔"]),
        ("2013 nats, in 2013, −2013", ["2013", "−2013"]),
        ("42 % of it, 3±1", ["42", "3", "1"]),
        (
            "it is twice as fast, ten times that, a tenth of it",
            ["twice", "ten times", "a tenth of"],
        ),
        ("half of them, four of five windows, tenfold", ["half of", "four of five", "tenfold"]),
        ("by three standard errors; [setting: twice], two models", ["three standard errors"]),
    ],
)
def test_hand_typed_numbers_are_listed(text, numbers):
    assert [number for _, number in find_hand_typed(text)] == numbers
