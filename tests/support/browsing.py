"""A headless browser for the tests of pages, and pictures of what it shows."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# A Chromium that Playwright has not brought itself, such as that of the npm package @sparticuz/chromium.
BROWSER = "BANDIT_ENVS_CHROMIUM"
FLAGS = ["--no-sandbox", "--headless=shell", "--disable-gpu"]
SCREENS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
LOADED = re.compile(r"(?:src|href|action)\s*=\s*[\"'](?!#|data:)|url\((?!#)|@import|\bfetch\(|XMLHttpRequest|import\(")


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


def data_of(page: str) -> Any:
    """What the script of a page reads."""
    return json.loads(page.partition('id="data">')[2].partition("</script>")[0])


def opened(browser: Any, path: Path, width: int, scheme: str, **more: Any) -> Iterator[Any]:
    """The page, which must make no error and ask nobody for anything."""
    errors: list[str] = []
    view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, **more)
    view.set_default_timeout(300_000)  # on a busy machine
    view.on("pageerror", lambda error: errors.append(str(error)))
    view.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    view.on("request", lambda request: errors.append(request.url) if not request.url.startswith("file:") else None)
    view.goto(path.as_uri())
    assert view.evaluate("document.documentElement.scrollWidth") <= width  # nothing to scroll sideways
    yield view
    view.close()
    assert errors == []


def shortened(value: Any) -> Any:
    """With numbers of twelve digits: libraries of linear algebra differ in the last ones."""
    if isinstance(value, dict):
        return {name: shortened(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shortened(one) for one in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value
