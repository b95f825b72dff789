"""Answers of 400 students to 100 questions, with missing answers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from components.datasets.named_target import NamedTarget, Variable, joint_target

MEAN = 0.75  # prior mean of the mean ability


def item_response(data: dict[str, Any], like: Tensor) -> NamedTarget:
    """P(student i answers question j) = σ(m + a_i − d_j), m ~ N(¾, 1), a_i and d_j ~ N(0, 1)."""
    shape = (max(data["student"]) + 1, max(data["question"]) + 1)
    # ±1 for a correct or wrong answer of student i to question j, 0 if missing
    sign = like.new_zeros(shape)
    sign[data["student"], data["question"]] = 2 * like.new_tensor(data["correct"]) - 1
    answered = sign.abs()

    def log_joint(m: Tensor, difficulty: Tensor, ability: Tensor) -> Tensor:
        logits = (m + ability).unsqueeze(2) - difficulty.unsqueeze(1)  # [K, students, questions]
        log_likelihood = (answered * logsigmoid(sign * logits)).sum((1, 2))
        unknowns = torch.cat([m - MEAN, difficulty, ability], 1)
        return log_likelihood - 0.5 * unknowns.square().sum(1)

    variables = (
        Variable("mean_student_ability"),
        Variable("question_difficulty", shape[1]),
        Variable("centered_student_ability", shape[0]),
    )
    return joint_target(variables, log_joint, like)
