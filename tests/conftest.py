"""Fixtures that several test files share."""

from pathlib import Path

import pytest

from bandit_envs import datasets


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the public data files: that of BANDIT_ENVS_DATA, else ../shared/data beside the project."""
    folder = datasets.local_folder() or Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the public data files are not here: set {datasets.VARIABLE} to a folder that has them")
    return folder
