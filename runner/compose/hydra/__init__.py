"""Hydra as the runner uses it: patches, restrictions, and errors in the terms of users."""
