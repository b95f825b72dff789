"""smoke=true applies the experiment's overrides, except to keys set and components replaced by the
user."""


def test_user_value_takes_precedence(make_job):
    job = make_job("+experiment=sarcos_mdgp", "smoke=true", "dataset.n_train=33")
    assert job.dataset.n_train == 33
    assert job.dataset.n_test == 100
    assert job.settings.steps == 6


def test_replaced_component_is_small_too(make_job):
    job = make_job("+experiment=sarcos_mdgp", "smoke=true", "model=smdgp")
    assert job.model.n_inducing == 10
    assert job.notes == ["model=smdgp: ignoring top of the experiment, which smdgp does not have"]


def test_replacing_sampler_keeps_draws_too(make_job):
    job = make_job("+experiment=mog", "smoke=true", "inference=mala")
    assert job.inference.warmup == job.settings.steps // 2
    assert (job.settings.steps - job.inference.warmup) // job.inference.thinning >= 4
