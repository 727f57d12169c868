"""The notebooks, cell by cell."""

import json
import os
from pathlib import Path

import pytest

ROOT = Path(os.environ["DRAY_ROOT"])
NOTEBOOKS = sorted((ROOT / "crates/python/notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_cell_runs(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(os.environ['DRAY']).parent}:{os.environ['PATH']}")
    names = {}
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 3
    for number, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), names)


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["fabric", "replay", "sizing"]
