"""Data sets: the facts of the real files, every kind of bad file, and where a file is looked for."""

import csv
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contests import GOOD, HEADER
from hypothesis import given, settings
from hypothesis import strategies as st

from bandit_envs import INSTANCES
from bandit_envs.instances import datasets, lookup
from bandit_envs.instances.datasets import FILES, SHIPPED, PublicFile, captions, local_folder

GOOD_COUNTS = [[1, 0, 1], [2, 1, 1], [5, 0, 0]]


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(datasets.VARIABLE, raising=False)


def write(folder: Path, text: str, contest: int = 900) -> Path:
    path = folder / f"{contest}_summary_KLUCB.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return path


# The real files -------------------------------------------------------------------------------------------------------


def test_facts_of_contest_651(data_folder: Path) -> None:
    data = captions(651, data_folder)
    means = data.means
    assert data.contest == 651
    assert data.counts.shape == (9250, 3)
    assert data.counts.sum() == 2_249_813
    assert (means >= 0.9 * means.max()).sum() == 46
    assert (means >= 0.8 * means.max()).sum() == 748
    assert (means >= 1.5).sum() == 216
    assert (means == 1.5).sum() == 12


@pytest.mark.parametrize("contest", [651, 627])
def test_means_are_the_scores_of_the_file(data_folder: Path, contest: int) -> None:
    with open(data_folder / f"{contest}_summary_KLUCB.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    data = captions(contest, data_folder)
    assert data.means.tolist() == data.arms().means.tolist() == [float(row["score"]) for row in rows]
    assert data.captions == tuple(row["caption"] for row in rows)


@pytest.mark.parametrize("damage", [lambda b: b[:-100], lambda b: b.replace(b"funny", b"funnY", 1), lambda b: b""])
def test_a_damaged_known_file_is_refused(data_folder: Path, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    name = "627_summary_KLUCB.csv"
    bad = damage((data_folder / name).read_bytes())
    (tmp_path / name).write_bytes(bad)
    with pytest.raises(ValueError, match="truncated or altered") as caught:
        captions(627, tmp_path)
    for part in (str(tmp_path / name), FILES[name].sha256, hashlib.sha256(bad).hexdigest(), FILES[name].url):
        assert part in str(caught.value)


def test_addresses() -> None:
    path = "d48a24e2e7c36d5851011f1e72bddc7fb1082851/contests/summaries/651_summary_KLUCB.csv"
    assert FILES["651_summary_KLUCB.csv"].url.endswith(f"githubusercontent.com/nextml/caption-contest-data-api/{path}")
    for name, file in FILES.items():
        assert file.name == name
        assert re.fullmatch("[0-9a-f]{40}", file.commit)
        assert re.fullmatch("[0-9a-f]{64}", file.sha256 or "0" * 64)
    unknown = {name for name, file in FILES.items() if file.sha256 is None and not name.startswith("json/")}
    assert unknown == {"690_summary_KLUCB.csv"}


# The parser -----------------------------------------------------------------------------------------------------------


def test_captions_by_hand(tmp_path: Path) -> None:
    data = captions(900, write(tmp_path, GOOD).parent)
    assert data.contest == 900
    assert data.counts.dtype == np.int64
    assert data.counts.tolist() == GOOD_COUNTS
    assert data.captions == ('Yes, but "why"\nnow?', "No.", "Where?")
    assert data.means.tolist() == [2.0, 1.75, 1.0]  # (1 + 3) / 2, (2 + 2 + 3) / 4, 5 / 5
    arms = data.arms()
    assert arms.K == 3
    assert arms.support == (1.0, 3.0)
    assert arms.means.tolist() == data.means.tolist()
    assert arms.variances.tolist() == [1.0, 0.6875, 0.0]  # 0.6875 = (2 + 4 + 9) / 4 - 1.75**2
    with pytest.raises(ValueError, match="read-only"):
        data.counts[0, 0] = 7


@pytest.mark.parametrize(
    "text",
    ["\ufeff" + GOOD, GOOD.replace("\n", "\r\n"), GOOD.rstrip("\n"), GOOD + "\n\n", GOOD.replace("\n2,", "\n\n2,")],
    ids=["byte order mark", "CRLF", "no last newline", "blank last lines", "blank line"],
)
def test_harmless_variants_of_a_file(tmp_path: Path, text: str) -> None:
    assert captions(900, write(tmp_path, text).parent).counts.tolist() == GOOD_COUNTS


counted = st.tuples(*[st.integers(0, 2**40)] * 3).filter(any)


@settings(deadline=None, max_examples=50)
@given(rows=st.lists(st.tuples(counted, st.text(st.characters(codec="utf-8"))), min_size=1, max_size=5))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    path = write(tmp_path_factory.getbasetemp(), "")
    with open(path, "w", encoding="utf-8", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["unfunny", "caption", "somewhat_funny", "funny", "count", "score"])
        for (a, b, c), text in rows:
            out.writerow([a, text, b, c, a + b + c, (a + 2 * b + 3 * c) / (a + b + c)])
    data = captions(900, path.parent)
    assert data.counts.tolist() == [list(counts) for counts, _ in rows]
    assert data.captions == tuple(text for _, text in rows)


BAD_FILES = {
    "empty": ("", "it is empty"),
    "blank": ("\n\n", "it is empty"),
    "header only": (HEADER + "\n", "and no row"),
    "wrong columns": ("rank,funny\n1,2\n", r"\['unfunny', 'somewhat_funny'\] are missing, found \['rank', 'funny'\]"),
    "twice": ("rank,unfunny,funny,somewhat_funny,funny\n1,2,3,4,5\n", r"columns \['funny'\] are there more than once"),
    "two captions": (GOOD.replace("rank,", "caption,", 1), r"columns \['caption'\] are there more than once"),
    "short row": (GOOD + "4,1,0\n", "line 6: it has 3 cells, the first line has 7"),
    "long row": (GOOD + "4,1,0,1,2,2.0,Yes, but\n", "line 6: it has 8 cells"),
    "open quote": (GOOD + '4,1,0,1,2,2.0,"Yes, b', "line 6: unexpected end of data"),
    "endless quote": (GOOD + '4,1,0,1,2,2.0,"' + "Yes, but\n" * 20_000, "field larger than field limit"),
    "no integer": (GOOD.replace("2,1,1,2,4", "2,x,1,2,4"), "line 4: .*'x'"),
    "fraction": (GOOD.replace("2,1,1,2,4", "2,1.0,1,2,4"), r"line 4: .*'1\.0'"),
    "negative": (GOOD.replace("2,1,1,2,4", "2,-1,3,2,4"), r"line 4: counts .* got \[2, 3, -1\]"),
    "all zero": (GOOD.replace("2,1,1,2,4", "2,0,0,0,0"), r"line 4: counts .* got \[0, 0, 0\]"),
    "beyond all bounds": (GOOD.replace("2,1,1,2,4", f"2,{10**30},1,2,4"), "line 4: counts"),
    "wrong count": (GOOD.replace("2,1,1,2,4", "2,1,1,2,5"), r"line 4: count is 5, .* \[2, 1, 1\] sum to 4"),
    "wrong score": (GOOD.replace("1.75", "1.750002"), "line 4: score is 1.750002, .* is 1.75"),
    "score is nan": (GOOD.replace("1.75", "nan"), "line 4: score is nan"),
    "score is text": (GOOD.replace("1.75", "high"), "line 4: .*'high'"),
    "many": (GOOD + "4,1,0,1,1,2.0,No\n" * 9, "line 6: .*; line 7: .*; line 8: .*; and 6 more$"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_files_are_refused_with_the_reason(tmp_path: Path, kind: str) -> None:
    text, reason = BAD_FILES[kind]
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}.*{reason}"):
        captions(900, tmp_path)


# Where a file is looked for -------------------------------------------------------------------------------------------


def test_a_folder_without_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write(elsewhere, GOOD)
    monkeypatch.setenv(datasets.VARIABLE, str(elsewhere))
    monkeypatch.setattr(datasets, "_download", lambda file: pytest.fail("a named folder never falls back"))
    for contest, other in ((900, "name the folder"), (651, re.escape(FILES["651_summary_KLUCB.csv"].url))):
        full = re.escape(str(tmp_path / f"{contest}_summary_KLUCB.csv"))
        with pytest.raises(FileNotFoundError, match=f"{full}: .*{other}"):
            captions(contest, tmp_path)
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "nowhere"))):
        captions(900, tmp_path / "nowhere")


def test_an_unknown_contest_without_a_folder() -> None:
    with pytest.raises(ValueError, match=r"691_summary.*627_summary.*651_summary.*pass `folder`.*BANDIT_ENVS_DATA"):
        captions(691)


@pytest.mark.parametrize("contest", [0, -651, 651.0, "651", True, None])
def test_a_contest_is_a_positive_integer(contest: Any) -> None:
    with pytest.raises(ValueError, match="contest must be an integer"):
        captions(contest)


def test_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert local_folder() is None
    for useless in ("", str(tmp_path / "nowhere"), str(write(tmp_path, GOOD))):
        monkeypatch.setenv(datasets.VARIABLE, useless)
        assert local_folder() is None
        with pytest.raises(ValueError, match="no public address"):
            captions(900)
    monkeypatch.setenv(datasets.VARIABLE, str(tmp_path))
    assert local_folder() == tmp_path
    assert captions(900).counts.tolist() == GOOD_COUNTS
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "901_summary_KLUCB.csv"))):
        captions(901)
    other = tmp_path / "other"
    other.mkdir()
    write(other, HEADER + "\n1,1,0,0,1,3.0,Here\n")
    assert captions(900, other).counts.tolist() == [[0, 0, 1]]  # the named folder comes first


def test_files_of_the_package_are_exact_copies_and_their_licences_are_there() -> None:
    named = {name: file for name, file in FILES.items() if (SHIPPED / name).is_file()}
    licences = {"LICENCES.md", "Apache-2.0.txt", "CDLA-Permissive-2.0.txt", "tpmax_20.csv"}  # and what is our own
    assert {str(path.relative_to(SHIPPED)) for path in SHIPPED.rglob("*") if path.is_file()} == {*named, *licences}
    assert len(named) == 27
    text = (SHIPPED / "LICENCES.md").read_text()
    for name, file in named.items():
        assert hashlib.sha256((SHIPPED / name).read_bytes()).hexdigest() == file.sha256
        assert f"{file.repository} @ {file.commit}" in text


def test_the_package_comes_after_the_variable_and_before_a_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "_download", lambda file: pytest.fail("the package has the file"))
    name = "627_summary_KLUCB.csv"
    assert datasets.fetched(name, None) == SHIPPED / name
    monkeypatch.setenv(datasets.VARIABLE, str(tmp_path))
    assert datasets.fetched(name, None) == SHIPPED / name
    (tmp_path / name).write_bytes((SHIPPED / name).read_bytes())
    assert datasets.fetched(name, None) == tmp_path / name
    (tmp_path / name).write_bytes(b"altered")
    with pytest.raises(ValueError, match="truncated or altered"):
        datasets.fetched(name, None)


def test_instances_that_need_a_file_which_does_not_come_with_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "_download", lambda file: pytest.fail(f"{file.name} was asked for"))
    others = {name for name, row in INSTANCES.items() if not row.ships}
    models = {f"models-{name}" for name in ("gsm", "legalbench", "musr", "wmt", "code", "bfcl", "json")}
    assert others == models | {"crowdsourcing", "maize", "soybean", "calls-gpqa", "flow-lines-50"}
    for name, row in INSTANCES.items():
        if row.ships and name not in ("table", "pools", "varied"):
            lookup.find(name)
    for form, whole in {
        "real-prompts(split='test')": True,
        "captions-651(every=50)": True,
        "pools(pools=['captions-651', 'captions-627'])": True,
        "pools(pools=['translators-ende', 'models-gsm'])": False,
        "maize": False,
    }.items():
        assert lookup.ships(form) == whole
    assert not lookup.ships({"pools": {"pools": [{"models-gsm": {"folder": "here"}}], "arms": 5}})
    assert lookup.ships({"pools": {"pools": ["translators-ende", {"distribution": "bernoulli", "mean": [0.1, 0.2]}]}})
    assert lookup.ships(None)


# Downloads, without a network -----------------------------------------------------------------------------------------


class Server:
    """Stands in for the network: contest 900 is public on it, and the cache is a folder of the test."""

    def __init__(self, cache: Path) -> None:
        self.cache, self.content, self.fails, self.asked = cache, GOOD.encode(), False, 0
        digest = hashlib.sha256(self.content).hexdigest()
        self.file = PublicFile("someone/data", "0" * 40, "here/900_summary_KLUCB.csv", digest)

    def __call__(self, url: str, output: str, pooch: object) -> None:
        assert url == self.file.url
        self.asked += 1
        Path(output).write_bytes(self.content[: len(self.content) // 2] if self.fails else self.content)
        if self.fails:
            raise ConnectionError("the line is dead")

    @property
    def cached(self) -> list[str]:
        return sorted(path.name for path in self.cache.iterdir())


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    pytest.importorskip("pooch", reason="downloads need pooch")
    server = Server(tmp_path / "cache")
    monkeypatch.setitem(FILES, server.file.name, server.file)
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" if project == "bandit_envs" else None)
    monkeypatch.setattr("pooch.core.choose_downloader", lambda url, progressbar=False: server)
    return server


def test_a_download_is_cached(server: Server) -> None:
    for _ in range(3):
        assert captions(900).counts.tolist() == GOOD_COUNTS
    assert server.asked == 1
    assert server.cached == [server.file.name]
    write(server.cache, GOOD.replace("No.", "Na."))  # an altered file is fetched again
    assert captions(900).captions[1] == "No."
    assert server.asked == 2


def test_the_variable_saves_the_download_or_falls_back_to_it(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(datasets.VARIABLE, str(tmp_path))
    path = write(tmp_path, GOOD)
    assert captions(900).counts.tolist() == GOOD_COUNTS
    assert server.asked == 0
    write(tmp_path, GOOD[:-1])
    with pytest.raises(ValueError, match="truncated or altered"):  # a file that is there is never passed over
        captions(900)
    path.unlink()
    assert captions(900).counts.tolist() == GOOD_COUNTS
    assert server.asked == 1


def test_a_broken_download_leaves_nothing(server: Server) -> None:
    server.fails = True
    with pytest.raises(OSError, match=r"someone/data.*the line is dead.*`folder`.*BANDIT_ENVS_DATA") as caught:
        captions(900)
    assert server.file.url in str(caught.value)
    assert server.cached == []
    server.fails = False
    assert captions(900).counts.tolist() == GOOD_COUNTS


def test_a_download_of_something_else_leaves_nothing(server: Server) -> None:
    server.content = b"<html>please log in</html>"
    with pytest.raises(ValueError, match=f"someone/data.*{server.file.sha256}.*BANDIT_ENVS_DATA") as caught:
        captions(900)
    assert hashlib.sha256(server.content).hexdigest() in str(caught.value)
    assert server.cached == []
