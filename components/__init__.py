"""The science: what is run."""

from components.old_names import install

install()
