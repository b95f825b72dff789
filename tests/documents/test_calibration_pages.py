"""Pages of calibration match their kept ranks."""

import pytest

from runner.disk.read_yaml import load_untrusted
from scripts.calibration_pages import PAGES, command, make_page, read
from scripts.prose.scores import FOLDER

DEFINED = load_untrusted(FOLDER / PAGES)


@pytest.mark.parametrize("name", DEFINED)
def test_page_matches_its_ranks(name):
    kept = read(name)
    assert list(kept) == list(DEFINED[name]["rows"])
    made = make_page(name, DEFINED[name], kept)
    assert (FOLDER / f"{name}.md").read_text(encoding="utf-8") == made
    assert (FOLDER / f"{name}.png").is_file()


def test_row_overrides_replace_page_overrides():
    page = {"words": "steps=5 model=mlp", "rows": {"one": "inference=nuts steps=7"}}
    assert command(page, "one") == "runner sbc steps=7 model=mlp inference=nuts"


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFINED)
def test_every_command_of_a_page_can_be_calibrated(name):
    from runner.commands.sbc.fits import ONCE, Fitter, RankSettings
    from runner.compose.resolve import resolve_words

    for row in DEFINED[name]["rows"]:
        words = command(DEFINED[name], row).split()[2:]
        assert Fitter(resolve_words(words, ONCE), RankSettings(99, 2)).template
