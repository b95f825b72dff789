"""``runner sbc``: simulation-based calibration of an inference method."""
