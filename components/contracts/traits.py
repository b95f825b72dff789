"""Words for what the data of a dataset are like, as far as its class knows before they are loaded,
and a model minds."""

from __future__ import annotations

# word -> description of a dataset with it, and of one without it
TRAITS: dict[str, tuple[str, str]] = {
    "several_tasks": ("several tasks", "one task"),
    "several_numbers": ("several numbers at a time", "one number at a time"),
    "single_values": ("one value a row", "several values a row"),
    "class_series": ("a series of classes", "a series of numbers"),
    "images": ("images", "no images"),
    "known_function": ("a function that is known", "no function that is known"),
    "unknown_states": ("states that nobody knows", "states that are known"),
    "binary_inputs": ("inputs 0 or 1", "inputs that are not 0 or 1"),
}
