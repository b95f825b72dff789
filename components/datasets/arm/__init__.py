"""Inverse dynamics of a seven-joint arm: SARCOS, and its built-in simulation."""
