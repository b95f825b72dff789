"""Published tables of one set of data, or of several."""

from runner.statistics.published import Published, load_published


def test_data_of_a_published_table():
    one = load_published("gallego_table_2_4")
    several = load_published("rodriguez_santana_table_1")
    assert (one.is_comparable_on("uci"), one.is_comparable_on("uci-sim"), one.data_label) == (
        True,
        False,
        "uci",
    )
    assert several.is_comparable_on("bimodal_toy")
    assert several.is_comparable_on("heteroscedastic_toy")
    assert not several.is_comparable_on("bimodal")  # a part of a name is no name
    assert several.data_label == "bimodal_toy and heteroscedastic_toy"
    assert isinstance(several, Published)
