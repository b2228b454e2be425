"""settings.json of a folder: what is evaluated there, so that nothing else is added to it."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.files import SETTINGS, as_first_spelled, json_form
from ..blocks import Group
from ..environment import make_known
from ..rows import Run
from .places import Place, WriteError, place_of
from .store import BLOCKS, CALLS, ENDED, SUMS, Store

FORMAT = "blocks 3"
SEAL = "seal"  # the checksum of all other entries
TABLES = ("summary.csv", "pulls.parquet")  # written beside the blocks when all are there


class RefusedError(ValueError):
    """To what a folder holds, the blocks that are asked for cannot be added."""


def claimed(
    address: str | Path,
    empty_runs: Sequence[Run],
    groups: Sequence[Group],
    episodes: int,
    identity: Mapping[str, object],
    settings: Mapping[str, object],
) -> Store:
    """The folder for an evaluation, which may hold blocks of it already; the rows depend on `identity` alone.

    Raises:
        RefusedError: if the folder holds another evaluation, naming what differs, or settings that cannot be read.
        WriteError: if it cannot be written to.
    """
    place = place_of(address)
    content = {
        "format": FORMAT,
        **settings,
        "episodes": episodes,
        "identity": identity,
        "groups": list(map(vars, groups)),
        "runs": [{**empty.describe(), "episodes": episodes, "seconds": None} for empty in empty_runs],
    }
    content = json.loads(json.dumps(content, default=json_form))
    text = json.dumps({**content, SEAL: _sealed(content)}, indent=1) + "\n"
    try:
        known = place.has(SETTINGS)
    except OSError as error:
        raise WriteError(f"{place} cannot be reached: {' '.join(str(error).split()):.300}") from error
    if known or not place.write(SETTINGS, text.encode(), new=True):
        try:
            there = _settings(place)
        except (ValueError, OSError) as error:
            raise RefusedError(str(error)) from error
        if there.get("format") != FORMAT or not isinstance(there.get("identity"), dict):
            held = "an evaluation of another form" if "runs" in there else f"{SETTINGS}, but not that of an evaluation"
            raise RefusedError(f"{place} holds {held}: no blocks can be added to it; give another out")
        if differing := _differences(as_first_spelled(there["identity"]), as_first_spelled(identity)):
            raise RefusedError(f"{place} holds another evaluation: {'; '.join(differing)}; give another out")
        groups = _groups(there["groups"])  # another version may have cut it otherwise
    store = Store(empty_runs, groups, episodes, settings, place, root_of(identity))
    place.tidy(store.inside)
    store.look()
    return store


def opened(address: str | Path, trust: bool) -> tuple[Store, dict[str, Any]] | None:
    """The folder with the blocks of an evaluation, and its settings; None if it holds none.

    Raises:
        ValueError: if its settings are not what this version writes, or name a module that is not trusted.
        ImportError: if they name a module that is not there.
    """
    place = place_of(address)
    settings = _settings(place) if place.has(SETTINGS) else {}
    form = settings.pop("format", None)
    if form != FORMAT:
        if isinstance(form, str) and form.startswith(FORMAT.split()[0]):
            raise ValueError(f"{place} was written by another version: its form is {form!r}, here {FORMAT!r} is read")
        return None
    make_known(str(settings.get("env_id")), trust)
    try:
        identity, forms, groups = settings.pop("identity"), settings.pop("runs"), _groups(settings.pop("groups"))
        empty_runs = [Run.described(form, trust) for form in forms]
        store = Store(empty_runs, groups, int(settings["episodes"]), settings, place, root_of(identity))
        store.look()
        if settings.get("precision") is not None:
            count = sum(block.episodes for block in store.blocks if 0 in block.runs)
            settings |= {"episodes": count, "look": store.ended}
        return store, settings
    except Exception as error:
        raise ValueError(f"{place} holds no evaluation that this version reads: {error!r:.300}") from error


def _groups(described: Any) -> list[Group]:
    """How the runs of a folder are cut into blocks, by its settings."""
    return [Group(tuple(map(int, one["runs"])), int(one["size"]), int(one["last"])) for one in described]


def _sealed(content: Mapping[str, object]) -> str:
    """The checksum of settings."""
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"


def _settings(place: Place) -> dict[str, Any]:
    """What settings.json holds."""
    try:
        found = json.loads(place.read(SETTINGS))
    except (ValueError, RecursionError) as error:
        raise ValueError(_with_advice(place, f"{place}/{SETTINGS} is no JSON: {error}")) from None
    if not isinstance(found, dict):
        raise ValueError(f"{place}/{SETTINGS} must hold a JSON object, got {found!r:.80}")
    seal = found.pop(SEAL, None)
    if found.get("format") == FORMAT and seal != _sealed(found):
        raise ValueError(_with_advice(place, f"{place}/{SETTINGS} is not what was written"))
    return found


def _with_advice(place: Place, text: str) -> str:
    after = "; where it is removed, the same evaluation goes on from the blocks in that folder"
    return text + after if _has_blocks(place) else text


def _has_blocks(place: Place) -> bool:
    return any(place.names(inside) for inside in (BLOCKS, SUMS))


def root_of(identity: Mapping[str, object]) -> str:
    """The hash of an evaluation, by its identity."""
    text = json.dumps(as_first_spelled(identity), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _differences(there: Mapping[str, object], asked: Mapping[str, object], within: str = "") -> list[str]:
    """What differs between two identities, in words."""
    found = []
    for name in dict.fromkeys([*there, *asked]):
        one, other = there.get(name), asked.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            found += _differences(one, other, f"{within}{name} ")
        elif one != other:
            here, wanted = (
                "missing" if value is None and name not in side else f"{value!r:.80}"
                for value, side in ((one, there), (other, asked))
            )
            found.append(f"{within}{name} is {here} there, {wanted} asked for")
    return found


def holds(address: str | Path) -> bool:
    """Whether a folder holds blocks of an evaluation, of any, or is ready for them."""
    place = place_of(address)
    return opened(address, False) is not None if place.has(SETTINGS) else _has_blocks(place)


def lacking(address: str | Path) -> int:
    """How many blocks the evaluation in a folder lacks."""
    found = opened(address, False)
    return 0 if found is None else len(found[0].missing())


def calls(address: str | Path) -> int:
    """How many calls have made blocks of the evaluation in a folder."""
    return len(place_of(address).names(CALLS))


def clear(address: str | Path) -> None:
    """Remove an evaluation of any form from a folder, and nothing else."""
    place = place_of(address)
    place.remove(SETTINGS)
    if not place.has(BLOCKS):
        for folder in (BLOCKS, SUMS, CALLS):
            for name in place.names(folder):
                place.remove(f"{folder}/{name}")
    for name in (BLOCKS, ENDED, *TABLES):
        if place.has(name):
            place.remove(name)


def add_tables(address: str | Path, result: Any) -> str | Path:
    """Write summary.csv and pulls.parquet of an evaluation beside its blocks; returns the address."""
    place = place_of(address)
    place.write(TABLES[0], result.summary().to_csv(index=False).encode())
    place.write(TABLES[1], result.pulls.to_parquet())
    return address
