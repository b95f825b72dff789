"""Ratios such as ``8/255`` are accepted by all keys with numbers, and only by these."""

DIGITS = ["dataset=digits", "model=mlp", "inference=map", "steps=5", "attacker=pgd"]


def test_ratio_equals_its_number(make_job):
    asked = [
        "attacker.eps=[0,8/255,16/255]",
        "inference.lr=1/64",
        "attacker.steps=80/2",
        "validation=1/4",
    ]
    written = ["attacker.eps=[0,0.03137254901960784,0.06274509803921569]", "inference.lr=0.015625"]
    job = make_job(*DIGITS, *asked)
    assert job.threat.sizes == (0, 8 / 255, 16 / 255)
    assert (job.config["inference"]["lr"], job.config["attacker"]["steps"]) == (1 / 64, 40)
    assert (
        job.signature
        == make_job(*DIGITS, *written, "attacker.steps=40", "validation=0.25").signature
    )


def test_ratio_works_in_parts_and_smoke_overrides(make_job):
    defence = [
        "inference=adversarial_training",
        "inference.training_attacker=fgsm",
        "inference.train_eps=8/255",
    ]
    job = make_job(
        *DIGITS[:2], "steps=5", *defence, "+smoke_overrides={inference: {lr: 1/8}}", "smoke=true"
    )
    assert (job.config["inference"]["train_eps"], job.config["inference"]["lr"]) == (8 / 255, 1 / 8)
    held = make_job(
        *DIGITS,
        "attacker=worst_case",
        "attacker.eps=[8/255]",
        "attacker.members=[{name: pgd, eps: [8/255], step_size: 1/4}]",
    )
    assert held.config["attacker"]["members"][0]["step_size"] == 1 / 4


def test_path_is_not_a_ratio(make_job, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "255").write_text("x,y\n1,2\n2,3\n3,5\n")
    job = make_job("dataset=csv", "dataset.path=8/255", "model=ridge", "inference=fit", "steps=1")
    assert job.config["dataset"]["path"] == "8/255"
