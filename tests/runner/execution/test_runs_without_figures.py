"""``figures=false``: same scores and record, without figures and file of draws."""

from support.runs.configured import repeatable

from runner.execution.execute import run

TOY = [
    "dataset=funnel",
    "dataset.dim=2",
    "model=target_density",
    "inference=sgld",
    "inference.burn_in=10",
    "steps=200",
]


def test_run_without_figures_has_equal_scores_and_no_draws_file(make_job):
    drawn, first = run(make_job(*TOY))
    assert list((drawn.job.folder / "figures").glob("*.png"))
    assert (drawn.job.folder / "posterior.nc").is_file()
    plain, second = run(make_job(*TOY, "figures=false", "fresh=true"))
    assert plain.job.signature == drawn.job.signature
    assert repeatable(first) == repeatable(second)
    assert not (plain.job.folder / "figures").exists()  # also no figures of the previous run
    assert not (plain.job.folder / "posterior.nc").exists()
    assert (plain.job.folder / "references.bib").is_file()
