"""A user's script for the forecast of structural_airline: maximum likelihood by statsmodels."""

from __future__ import annotations

import csv
import json
import math
import os
from pathlib import Path

import numpy as np
from statsmodels.tsa.statespace.structural import UnobservedComponents

path = Path(os.environ["RUNNER_DATA_DIR"], "timeseries", "airline-passengers.csv")
with path.open(encoding="utf-8") as file:
    y = np.array([math.log(float(row[1])) for row in list(csv.reader(file))[1:]])
fit = UnobservedComponents(y[:120], "local linear trend", seasonal=12).fit(disp=False)
forecast = fit.get_forecast(24)
interval = forecast.conf_int(alpha=0.1)
covered = ((y[120:] >= interval[:, 0]) & (y[120:] <= interval[:, 1])).mean()
error = np.abs(forecast.predicted_mean - y[120:]).mean()
print(json.dumps({"mae": float(error), "coverage90": float(covered)}))
