"""Fixtures that several test files share."""

from pathlib import Path

import pytest

from bandit_envs import datasets


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the public data files, which the variable BANDIT_ENVS_DATA names."""
    folder = datasets.local_folder()
    if folder is None or not folder.is_dir():
        pytest.skip(f"the public data files are not here: set {datasets.VARIABLE} to a folder that has them")
    return folder
