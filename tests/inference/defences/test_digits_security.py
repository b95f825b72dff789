import pytest

from runner.execution.execute import run

SGD = ["inference.optimizer=sgd", "inference.momentum=0.5"]
DEFENCES = {
    "none": ["inference=map", *SGD],
    "AT": ["inference=adversarial_training", *SGD],
    "ARA": ["inference.chains=2"],
}


@pytest.mark.slow
def test_defences_keep_accuracy_and_withstand_pgd(make_job):
    """With a quarter of the experiment's steps, both gain at least 0.1 under PGD of size 0.15 and
    lose at most 0.07 on clean inputs."""
    small = [
        "steps=500",
        "eval_every=null",
        "attacker=pgd",
        "attacker.steps=10",
        "attacker.step_size=0.25",
    ]
    results = {
        name: run(make_job("+experiment=digits_security", *small, *changes))[1]
        for name, changes in DEFENCES.items()
    }
    clean = {name: result["accuracy"][0] for name, result in results.items()}
    robust = {name: result["robust_accuracy/eps=0.15"][0] for name, result in results.items()}
    for name in ("AT", "ARA"):
        assert robust[name] > robust["none"] + 0.1, robust
        assert clean[name] > clean["none"] - 0.07, clean
