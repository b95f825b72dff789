"""A command line of overrides, composed and resolved in this process."""

from __future__ import annotations

from runner.compose.resolve import ResolvedConfig
from runner.disk import conf_folders
from runner.errors import ConfigError


def compose_words(words: list[str], once: str) -> ResolvedConfig:
    """The config in full of ``words``: overrides, and ``--config-dir``.

    Args:
        words: as on the command line of one run.
        once: advice for an override with several values, as "call run once for each".

    Raises:
        ConfigError: any mistake that shows without building a component.
    """
    from hydra.core.hydra_config import HydraConfig
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from runner.compose.hydra import patches as hydra_patches
    from runner.compose.hydra.errors import explain, parse_overrides
    from runner.compose.overrides import compose_in_full, explicit_keys, split_hydra_config
    from runner.compose.resolve import resolve

    argv, folder = conf_folders.split_config_dir(words)
    conf_folders.use(folder)
    with hydra_patches.within():
        try:
            cfg = compose_in_full(argv)
            HydraConfig.instance().set_config(cfg)  # for ${hydra:…} in a user's config
            config_parts = split_hydra_config(cfg)
        except (HydraException, OmegaConfBaseException, ValueError) as error:
            if type(error) is ValueError and "Config group override" not in str(error):
                raise
            if swept := [o.input_line for o in parse_overrides(argv) if o.is_sweep_override()]:
                raise ConfigError(f"{swept[0]}: several values are a sweep; {once}") from None
            raise ConfigError(explain(error, argv)) from None
        return resolve(*config_parts, explicit_keys(argv))
