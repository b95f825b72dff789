"""Published tables with one or several data sets."""

from runner.statistics.published import Published, load_published


def test_published_table_matches_data_by_name():
    table = load_published("gallego_table_2_4")
    several = load_published("rodriguez_santana_table_1")
    assert (table.is_comparable_on("uci"), table.is_comparable_on("uci-sim"), table.data_label) == (
        True,
        False,
        "uci",
    )
    assert several.is_comparable_on("bimodal_toy")
    assert several.is_comparable_on("heteroscedastic_toy")
    assert not several.is_comparable_on("bimodal")  # a part of a name does not match
    assert several.data_label == "bimodal_toy and heteroscedastic_toy"
    assert isinstance(several, Published)
