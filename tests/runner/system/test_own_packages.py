"""A user's folders named conf and components next to a script do not affect runner."""

import pytest
from support.runs.user_folder import run_python


@pytest.mark.parametrize("is_package", [True, False])
def test_folders_of_users_are_left_unchanged(tmp_path, is_package):
    for name in ("conf", "components"):
        (tmp_path / name).mkdir()
        if is_package:
            (tmp_path / name / "__init__.py").write_text("raise SystemExit('imported')\n")
    code = (
        "import sys; sys.argv = ['runner', 'list', 'gradient', '--json']\n"
        "import runner; from runner.commands.cli import main; main()"
    )

    result = run_python(["-c", code], tmp_path)

    assert result.returncode == 0, result.stderr
    assert '"name": "reparam"' in result.stdout


def test_conflicting_imported_package_is_named(tmp_path):
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "__init__.py").touch()

    # an editable installation is found before folders of the path: without it
    code = "import sys; sys.meta_path = [f for f in sys.meta_path if 'editable' not in repr(f)]\n"
    result = run_python(["-c", f"{code}import components, runner"], tmp_path)

    assert result.returncode == 1
    assert "import runner before it, or rename it" in result.stderr.splitlines()[-1]
