"""DeepFool: literal algorithm, and exact distances to planes."""

import pytest
import torch
from support.runs.configured import generator
from support.small.small_victims import make_victim, perturb
from torch.testing import assert_close


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_deepfool_matches_literal_algorithm(norm):
    """Row by row on the logits, without a cap, as published."""
    model, x, y = make_victim(15, seed=1)
    ours = perturb("deepfool", model, x, y, 1e6, bounds=None, norm=norm, steps=20)
    dual = {"l2": 2, "linf": 1}[norm]

    def logits(z):
        return model.predict(z[None], generator()).logits[0, 0, 0]

    for b in range(len(x)):
        total = torch.zeros_like(x[b])
        label = int(y[b])
        for _ in range(20):
            if int(logits(x[b] + 1.02 * total).argmax()) != label:
                break
            point = x[b] + total
            f = logits(point)
            jacobian = torch.autograd.functional.jacobian(logits, point)
            steps = []
            for k in range(3):
                if k != label:
                    w = jacobian[k] - jacobian[label]
                    gap = abs(float(f[k] - f[label]))
                    length = gap / float(w.norm(p=dual))
                    direction = w / w.norm() if norm == "l2" else w.sign()
                    steps.append((length, length * direction))
            total = total + min(steps, key=lambda step: step[0])[1]
        assert_close(ours[b], x[b] + 1.02 * total)
