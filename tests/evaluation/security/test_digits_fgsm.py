from runner.execution.execute import run


def test_digits_experiment_learns_and_is_fooled(make_job):
    """A third of the experiment's own steps: above 95 % clean, near chance or below it at ε = 0.3,
    attack trusted."""
    going, result = run(make_job("+experiment=digits_fgsm", "steps=1000", "eval_every=null"))
    assert result["accuracy"][0] > 0.95
    assert result["robust_accuracy"][0] < 0.15
    assert result["attack_checks_passed"] == [1.0]
    curve = [
        result["accuracy"][0],
        *(result[f"robust_accuracy/eps={eps:.2f}"][0] for eps in (0.05, 0.1, 0.2, 0.3)),
    ]
    assert curve == sorted(curve, reverse=True)
    assert (going.record.folder / "figures" / "security_curve.png").exists()
    assert (going.record.folder / "tables" / "attack_checks.csv").exists()
