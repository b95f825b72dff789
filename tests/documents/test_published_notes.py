"""Notes on published numbers appear on pages of results: they quote publications, not our results."""

from __future__ import annotations

import re

import pytest

from runner.statistics.published import Published, load_published
from scripts.prose.hand_typed import WORDS, blank_allowed
from scripts.prose.printed import list_tables

# numbers from a text or from released code that are not in the table, settings, and theory
KNOWN = {
    "boustati_table_d_1": ["thrice"],
    "gallego_figure_4_13": ["4.12", "4.13", "0.7", "0.7", "3.35"],
    "gallego_figure_4_14": ["0.1"],
    "gallego_figure_4_6": ["0.5", "0.002"],
    "gallego_figure_4_6_belief": ["0.5", "0.002"],
    "gallego_figure_4_6_frequencies": ["0.002"],
    "gallego_figure_4_8": ["0.75"],
    "gallego_table_1_2": ["1.7", "−1.5", "0.4"],
    "gallego_table_1_7": [
        *("0.9997814", "0.9997621", "1.00001", "0.9998523", "1.000033", "1.000522", "0.9999129"),
        *("0.999768", "0.9997925", "1.030499", "1.005669", "1.000532"),
    ],
    "gallego_table_2_4": ["0.177", "0.049", "0.52", "0.70"],
    "gallego_table_2_5": ["0.177", "0.049", "0.52", "0.70"],
    "gallego_table_2_7": ["1.96"],
}
FRACTION = re.compile(r"(?<![\w.(])[−-]?\d*\.\d+")  # (3.11) is an equation


def find_foreign(table: Published) -> list[str]:
    """Fractions and multiples in a table's note that the table does not contain."""
    names = [*table.values, *(column for row in table.values.values() for column in row)]
    texts = [*names, *(number.text for row in table.values.values() for number in row.values())]
    printed = {float(number) for text in texts for number in re.findall(r"\d+(?:\.\d+)?", text)}
    printed |= {round(100 * number, 6) for number in printed}
    note = blank_allowed(table.note or "")
    fractions = [m[0] for m in FRACTION.finditer(note)]
    foreign = [f for f in fractions if abs(float(f.replace("−", "-"))) not in printed]
    return [*foreign, *(match[0] for match in WORDS.finditer(note))]


@pytest.mark.parametrize("table", list_tables(), ids=lambda table: table.name)
def test_notes_quote_no_own_results(table):
    assert set(find_foreign(table)) <= set(KNOWN.get(table.name, []))


def test_result_in_note_is_detected():
    table = load_published("gallego_figure_4_8")
    noted = table.model_copy(
        update={"note": "Print has −0.98, eq. (3.11) β = 0.4; ours gets −0.87, twice as much."}
    )
    assert find_foreign(noted) == ["−0.87", "twice"]
