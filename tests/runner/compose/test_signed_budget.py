"""The shrinkage of plans leaves the names of earlier runs as they were, but of planned ones."""

from runner.compose.settings import sign


def config(total, **budget):
    return {"dataset": {"name": "retail_sim", "budget": {"total": total, **budget}}, "seed": 0}


def test_shrinkage_is_signed_where_something_is_planned():
    for total in (None, 20.0):
        assert sign(config(total, shrink=False), "sales") == sign(config(total), "sales")
    assert sign(config(None, shrink=True), "sales") == sign(config(None), "sales")
    assert sign(config(20.0, shrink=True), "sales") != sign(config(20.0), "sales")
