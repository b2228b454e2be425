"""A headless browser for the tests of pages, and pictures of what it shows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# A Chromium that Playwright has not brought itself, such as that of the npm package @sparticuz/chromium.
BROWSER = "BANDIT_ENVS_CHROMIUM"
FLAGS = ["--no-sandbox", "--headless=shell", "--disable-gpu"]


@pytest.fixture
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
    path = os.environ.get(BROWSER)
    with playwright.sync_playwright() as driver:
        try:
            made = driver.chromium.launch(executable_path=path, args=FLAGS if path else [])
        except playwright.Error as error:
            pytest.skip(f"no Chromium: `playwright install chromium`, or {BROWSER}=path: {str(error).splitlines()[0]}")
        yield made
        made.close()


def shot(view: Any, name: str) -> None:
    """Keep a picture where the variable BANDIT_ENVS_SHOTS names a folder."""
    if folder := os.environ.get("BANDIT_ENVS_SHOTS"):
        view.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)
