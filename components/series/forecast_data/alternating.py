"""Zeros and ones in turn."""

from __future__ import annotations

import torch

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.registry import register
from components.series.forecasting import ClassSeries, Forecasting


@register("dataset", "alternating")
class Alternating(ClassSeries):
    """A series of alternating values 0, 1, 0, 1, …, for models that assume C classes.

    y [1, T, 1]; the last ``n_ahead`` of the ``n_steps`` times are to be forecast.

    Raises:
        ConfigMismatchError: no observations are left to learn from.

    Source: Gallego (2021), section 2.4.2, "Prediction with an HMM".
    """

    def load(self, rng: Rng, setting: Setting) -> Forecasting:
        y = (torch.arange(self.n_steps, device=setting.device) % 2).to(setting.dtype).view(1, -1, 1)
        return self.hide_future(y)
