"""``runner sbc``: table and verdict of an exact posterior, continuation, --check, and errors."""

import json

import pytest

from runner.commands.sbc import fits
from runner.commands.sbc.rank_record import FACTS, RANKS, RankResults, open_ranks
from runner.commands.sbc.sbc_command import main
from runner.errors import ConfigError

CONFIG = [
    "inference=conjugate_bayes",
    "model=linear_regression",
    "dataset=linear_simulation",
    "dataset.n_train=8",
    "dataset.n_test=4",
    "dataset.beta=[1.0]",
    "model.prior_scale=1.0",
    "model.intercept_scale=1.0",
    "model.noise=1.0",
    "inference.draws=20",
    "inference.simulations=1",
    "inference.decisions=[squared]",
    "steps=1",
]
SIZES = ["--data-sets", "20", "--draws", "19", "--inputs", "1"]


def calibrate(folder, *more):
    return main(["sbc", *CONFIG, f"output_dir={folder}", *SIZES, *more])


def test_exact_posterior_passes_and_the_command_resumes(tmp_path, monkeypatch, capsys):
    fitted = []
    fit = fits.Fitter.fit

    def stop_at_seven(self, data_set):
        if len(fitted) == 7:
            raise KeyboardInterrupt
        fitted.append(data_set)
        return fit(self, data_set)

    monkeypatch.setattr(fits.Fitter, "fit", stop_at_seven)
    assert calibrate(tmp_path) == 130
    assert "7 data sets are saved" in capsys.readouterr().out
    (folder,) = (tmp_path / "sbc").iterdir()
    kept = (folder / RANKS).read_text()
    (folder / RANKS).write_text(kept + '{"data_set": 7, "ra')  # truncated by a crash
    monkeypatch.setattr(fits.Fitter, "fit", lambda self, r: (fitted.append(r), fit(self, r))[1])
    assert calibrate(tmp_path, "--check") == 0
    out = capsys.readouterr().out
    assert "7 of 20 data sets are done already" in out
    assert "smallest p times 10 tests" in out
    assert fitted == list(range(20))
    assert (folder / RANKS).read_text().startswith(kept)
    assert json.loads((folder / FACTS).read_text())["draws"] == 19
    assert (folder / "scores.csv").read_text().splitlines()[-1].startswith("log joint,")
    assert {path.name for path in folder.glob("*.png")} == {"ecdf.png", "ranks.png"}
    assert calibrate(tmp_path) == 0
    assert len(fitted) == 20


def test_ranks_depend_on_seed_and_data_set_only(tmp_path):
    resolved = fits.resolve_words([*CONFIG, f"output_dir={tmp_path}"], "")
    settings = fits.RankSettings(19, 1)
    forwards = [fits.Fitter(resolved, settings).fit(r)["ranks"] for r in (0, 1)]
    backwards = fits.Fitter(resolved, settings)
    assert [backwards.fit(r)["ranks"] for r in (1, 0)] == forwards[::-1]


def test_check_refuses_ranks_at_both_ends_and_failed_fits():
    ends = [{"data_set": r, "ranks": {"a": 19 * (r % 2)}} for r in range(40)]
    narrow = RankResults.of_rows(ends, 19, 10)
    assert narrow.is_refused
    assert narrow.conclude().startswith("REFUSED: ranks are not uniform")
    assert narrow.cells()[0][-1] == "too narrow"
    even = [{"data_set": r, "ranks": {"a": r % 20}} for r in range(40)]
    assert not RankResults.of_rows(even, 19, 10).is_refused
    failed = RankResults.of_rows([*even, {"data_set": 40, "error": "diverged"}], 19, 10)
    assert failed.is_refused
    assert "1 fits failed (data set 40: diverged)" in failed.conclude()


def test_refused_command_leaves_no_files(tmp_path):
    with pytest.raises(ConfigError, match=r"--bins 7: must divide 20"):
        calibrate(tmp_path, "--bins", "7")
    with pytest.raises(ConfigError, match=r" 20 draws, but --draws 99 .*; raise steps"):
        calibrate(tmp_path, "--draws", "99")
    with pytest.raises(ConfigError, match=r"several values .*; run the command once"):
        calibrate(tmp_path, "seed=1,2")
    with pytest.raises(ConfigError, match=r"model=ridge: cannot simulate.*linear_regression"):
        main(
            ["sbc", "inference=fit", "model=ridge", *CONFIG[2:6], f"output_dir={tmp_path}", *SIZES]
        )
    assert not list((tmp_path / "sbc").glob("fit-*"))


def test_simultaneous_process_is_refused(tmp_path):
    second = open_ranks(tmp_path / "a", {}, fresh=False)
    with (
        open_ranks(tmp_path / "a", {}, fresh=False),
        pytest.raises(ConfigError, match="another process is running this calibration"),
        second,
    ):
        pass
