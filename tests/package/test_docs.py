"""The documentation's code runs as printed, and its tables name what exists."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import re
import runpy
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from model_digests import STORED, digest_of
from pages import of_pages, write_files
from processes import with_path
from words_of_pages import long_lines, maker, sentences

from agents.registry import AGENTS, LEARNED
from bandit_envs.envs.catalogue import ENVIRONMENTS
from bandit_envs.instances.lookup import INSTANCES

ROOT = Path(__file__).parents[2]
OURS = ("agents", "bandit_envs")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


FEWER = [  # what makes the blocks of a page quick
    (r"episodes=\d+(?![\d*])", "episodes=20"),
    (r"learn\(\d[\d_]*\)", "learn(1)"),
    (r"n_steps=512", "n_steps=64"),
    (r"precision=0.02", "precision=0.2"),
    (r"steps=8192", "steps=1024"),
    (r"held_out=\d+", "held_out=20"),
    (r"range\(20\)", "range(3)"),
]


MORE = (
    "ab-tests",
    "agents",
    "benchmark",
    "certificates",
    "evaluation",
    "feasible",
    "learned",
    "model-selection",
    "pictures",
    "session",
    "training",
)
WITH_BLOCKS = {page.stem: page for page in PAGES if BLOCK.search(page.read_text())}
SIZES = [("more" if stem in MORE else "few", stem) for stem in WITH_BLOCKS]


@pytest.mark.parametrize(("size", "stem"), [*SIZES, *(("printed", stem) for stem in WITH_BLOCKS)])
def test_python_blocks_run(size, stem, tmp_path, monkeypatch):
    """With fewer episodes and steps, and, slowly, as they are printed."""
    if stem == "session":
        pytest.importorskip("sqlalchemy")
    monkeypatch.chdir(tmp_path)
    write_files(page := WITH_BLOCKS[stem], tmp_path)
    names: dict[str, object] = {}
    for i, code in enumerate(BLOCK.findall(page.read_text())):  # they share their names, as a reader would type them
        file = tmp_path / f"{stem}_{i}.py"  # compilers look the source of a function up
        for pattern, few in [] if size == "printed" else FEWER:
            code = re.sub(pattern, few, code)
        file.write_text(code)
        exec(compile(code, str(file), "exec"), names)


def test_blocks_import_what_is_there():
    """And take from our packages what these have."""
    for code in of_pages():
        tree = ast.parse(code)
        for node in ast.walk(tree):
            module = getattr(node, "module", None) or ""
            if isinstance(node, ast.ImportFrom) and module.partition(".")[0] in OURS:
                exec(ast.unparse(node), {})
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in OURS:
                assert hasattr(importlib.import_module(node.value.id), node.attr), ast.unparse(node)


def test_pages_that_the_code_makes_are_those_of_the_code():
    """If this fails: python docs/generate.py."""
    made = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    pages = {f"problems/{name}.md": text for name, text in made["pages"]().items()}
    assert set(pages) == {f"problems/{name}.md" for name in ENVIRONMENTS}
    for name, text in (pages | {name: make() for name, make in made["MADE"].items()}).items():
        assert (ROOT / "docs" / name).read_text() == text, name


def headings(page):
    """The level and the anchor of each heading of a page, as Sphinx makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"^(#+) (.*)$", text, re.MULTILINE)
    return [(len(marks), re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")) for marks, title in found]


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if page.name != "claims.md"], ids=lambda p: p.stem)
def test_headings_leave_out_no_level_and_links_find_them(page):
    """Defect: `sphinx-build -W` failed."""
    levels = [level for level, _ in headings(page)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), levels
    for file, anchor in re.findall(r"\]\(([\w/.-]*)#([\w-]+)\)", page.read_text()):
        target = page.parent / file if file else page
        assert anchor in [name for level, name in headings(target) if level <= 3], f"{file}#{anchor}"


def by_hand(page):
    return not maker(page.relative_to(ROOT).as_posix())


def test_pages_by_hand_have_short_lines_and_plain_words():
    """At most 140 characters, but for rows of tables and code; the words are those of sessions and of old files."""
    assert long_lines("word " * 29 + "\n| " + "cell " * 99 + "|\n") == ["word " * 29]
    assert (
        len(sentences("One, et al. 2019, is here.\n\n| a. b. |\n\n- Two (three). Four\n\n```text\nx. y.\n```\n")) == 3
    )
    pages = {page: page.read_text() for page in PAGES if by_hand(page)}
    assert [(page.name, line) for page, text in pages.items() for line in long_lines(text)] == []
    printed = "no result has been told yet"  # by `bandit-envs session show`
    words = re.compile(r"(?i)\b(told|anew|nobody|genes)\b")
    assert [page.name for page, text in pages.items() if words.search(text.replace(printed, ""))] == []


def test_nothing_is_installed_by_its_name():
    """Defect: pages and errors said so, and no index has the package."""
    files = [*PAGES, *(ROOT / "agents").rglob("*.py"), *(ROOT / "bandit_envs").rglob("*.py")]
    assert not [file for file in files if re.search(r"pip install \S*bandit-envs", file.read_text())]


def test_pages_of_algorithms_name_what_is_there():
    """Every name in code in the tables that put the paper beside the code is a name of the code."""
    files = (path for top in ("agents", "bandit_envs") for path in (ROOT / top).rglob("*.*"))
    source = "\n".join(path.read_text() for path in files if path.suffix in (".py", ".toml"))
    known = set(re.findall(r"\w+", source))
    for page in sorted((ROOT / "docs" / "algorithms").glob("*.md")):
        rows = "\n".join(line for line in page.read_text().splitlines() if line.startswith("|"))
        named = {word for code in re.findall(r"`([^`]+)`", rows) for word in re.findall(r"[A-Za-z_]\w+", code)}
        assert named <= known, (page.name, named - known)


def test_tables_name_what_exists():
    environments, instances, agents = (
        (ROOT / "docs" / f"{name}.md").read_text() for name in ("environments", "front/instances", "front/agents")
    )
    assert set(re.findall(r"`bandit_envs/(\w+)-v0` \|", environments)) == set(ENVIRONMENTS)
    assert set(re.findall(r"^\| `([\w.-]+)`", instances, re.MULTILINE)) == {*INSTANCES}
    assert set(re.findall(r"^\| \[?`([\w-]+)`", agents, re.MULTILINE)) == {*AGENTS, *LEARNED}


MEASURED = "which-agent|learned-results|model-selection/budget|real-tables/(?:summary|columns)"
TABLE = re.compile(rf"^(?:\|.*\n)+|^```\{{include\}} (?:{MEASURED}).*\n```\n", re.MULTILINE)
STAMP = re.compile(r"<!-- models: (.*) -->")
PLAYED = ["learned-results.md", "model-selection.md", "real-tables.md", "which-agent.md"]


@pytest.mark.parametrize("page", PLAYED)
def test_tables_of_learned_agents_are_of_the_models_that_are_stored(page):
    """If this fails: make the table again by the command above it, then write what `model_digests.py` prints below it.

    A table that tells nothing of a stored model says so: `<!-- models: none -->`.
    """
    text = (ROOT / "docs" / page).read_text()
    asked = 0
    for table in TABLE.finditer(text):
        if table[0].startswith("|") and not (re.search(r"`(evolved|ppo)\b", table[0]) and re.search(r"\.\d", table[0])):
            continue
        stamp = STAMP.match(text, table.end() + 1)
        assert stamp, f"{page}: no comment on the models below {table[0].splitlines()[0]}"
        names = re.findall(r"(?:evolved|ppo)[a-z-]*", stamp[1])
        assert stamp[1] == (", ".join(f"{name} {digest_of(name)}" for name in names) or "none")
        asked += bool(names)
    assert asked


def test_digests_tell_models_apart():
    names = [path.stem for path in STORED.glob("*.json")]
    assert len({digest_of(name) for name in names}) == len(names) >= 10


def test_the_reference_names_what_exists():
    text = (ROOT / "docs" / "api.md").read_text()
    rows = re.findall(r"automodule:: ([\w.]+)\n +:members:(.*)", text)
    assert rows
    rows += re.findall(r"auto(?:class|function):: ([\w.]+)\.(\w+)", text)
    known = {f"{module}.{name.strip()}" for module, members in rows for name in members.split(",")}
    assert len(known) == sum(len(members.split(",")) for _, members in rows)  # nothing twice
    for module, members in rows:
        found = importlib.import_module(module)
        assert [name for name in members.split(", ") if name.strip() and not hasattr(found, name.strip())] == []


TREE = re.compile(r"^```{toctree}\n(.*?)\n\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def test_the_index_lists_every_page():
    """In four trees, whose pages may have trees of their own."""
    docs = ROOT / "docs"
    trees = TREE.findall((docs / "index.md").read_text())
    captions = [re.findall("^:caption: (.+)$", head, re.MULTILINE) for head, _ in trees]
    assert len(trees) == 4
    assert all(len(caption) == 1 for caption in captions)
    others = [path.read_text() for path in sorted(docs.glob("*.md")) if path.stem != "index"]
    inner = [tree for text in others for tree in TREE.findall(text)]
    listed = [page for _, pages in trees + inner for page in pages.split()]
    included = "figures/claims.md figures/sentences.md figures/*/*.md front/*.md"
    included += " learned-results/*.md model-selection/*.md which-agent/*.md benchmark/*.md real-tables/*.md"
    parts = {path for pattern in included.split() for path in docs.glob(pattern)}
    pages = {str(path.relative_to(docs).with_suffix("")) for path in {*docs.rglob("*.md")} - parts} - {"index"}
    assert sorted(listed) == sorted(pages)  # each of them once
    assert max(len(pages.split()) for _, pages in trees + inner) <= 12
    assert listed[0] == "tutorial"


@pytest.fixture(scope="module")
def conf():
    for package in ("docutils", "latex2mathml"):  # the first comes with Sphinx, in the extra `docs`
        pytest.importorskip(package)
    return runpy.run_path(str(ROOT / "docs" / "conf.py"))


def test_formulas_are_read_without_the_network(conf):
    """Every formula becomes MathML, which browsers draw themselves; none is left to a script from elsewhere."""
    assert conf["html_math_renderer"] == "mathml"
    formulas = [
        (block or line, bool(block))
        for page in PAGES[1:]
        for block, line in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", page.read_text(), re.DOTALL)
    ]
    assert len(formulas) > 200
    for formula, displayed in formulas:
        made = conf["mathml"](formula, displayed)
        tree = ElementTree.fromstring(made)
        assert tree.tag.endswith("math")
        assert (tree.get("display") == "block") == displayed
        assert "\\" not in "".join(tree.itertext()), formula  # a command of LaTeX that it does not know
    assert "ln<mspace" not in conf["mathml"](r"\ln(n)", False)
    assert re.search("ln</m[io]><mspace[^>]*/><mi>n", conf["mathml"](r"\ln n", False))


def test_stars_and_bars_of_docstrings_are_escaped_once(conf):
    lines = [r":param \*\*parameters: the algorithm's own, of |x| and a * b", "plain"]
    conf["_plain"](None, "class", "Agent", None, None, lines)
    assert lines == [r":param \*\*parameters: the algorithm's own, of \|x\| and a \* b", "plain"]
    conf["_plain"](None, "module", "agents", None, None, lines)
    assert lines == []


EXAMPLES = {
    "ab_test": ["--days", "8", "--out", "ab.png"],
    "benchmark_ppo": ["8000"],
    "cleanrl_ppo": ["8192"],
    "compare": [],
    "compare_logs": [],
    "flaky_tests": [],
    "gymnasium_loop": [],
    "inspect_harness": [],
    "inspect_stopping": [],
    "in_context": ["20", "1", "40"],
    "language_inspect": [],
    "language_policy": ["--iterations", "1", "--speech", "1", "--seeds", "1", "--episodes", "20"],
    "learned_instances": ["2", "mason"],
    "model_selection": ["5", "4,8"],
    "learned_bounds": ["50", "BestArm 3, 12"],
    "learned_dpt": ["1", "2", "40"],
    "learned_icpe": ["1", "2", "20", "2"],
    "learned_laws": ["20", "Feasible, corner, B|AllGood, K = 10, price 0.001"],
    "learned_control": ["0.005", "means on"],
    "learned_ppo": ["20", "TopK, K = 10, T = 100"],
    "learned_rgo": ["1", "20", "20"],
    "learned_seeds": ["seeds", "AllGood", "1", "1"],
    "learned_table": ["0.0004", "evolved"],
    "optuna_pruner": ["2"],
    "own_ids": [],
    "real_priors": ["20", "1", "captions, K = 10, T = 100"],
    "rl_zoo": ["2048"],
    "rllib_ppo": ["2048"],
    "sb3_dqn": ["2000"],
    "simulators": ["--quick"],
    "sb3_ppo": ["2048"],
    "sb3_recurrent_ppo": ["1024"],
    "skrl_ppo": ["2048"],
    "tianshou_ppo": ["2048"],
    "torchrl_ppo": ["2048"],
    "which_agent": ["--episodes", "4", "--problems", "Feasible"],
}
NEEDS = {  # packages that the tests do without, and pytest
    "flaky_tests": "pytest",
    "inspect_harness": "inspect_ai",
    "inspect_stopping": "inspect_ai",
    "language_inspect": "inspect_ai",
    "optuna_pruner": "optuna",
    "rl_zoo": "rl_zoo3",
    "rllib_ppo": "ray",
    "sb3_recurrent_ppo": "sb3_contrib",
    "skrl_ppo": "skrl",
    "tianshou_ppo": "tianshou",
    "torchrl_ppo": "torchrl",
}
QUICK = ("ab_test", "compare", "compare_logs", "flaky_tests", "gymnasium_loop", "learned_ppo", "learned_table")
QUICK += ("own_ids", "sb3_dqn", "simulators")
SHARED = {"history_reader"}  # what several examples import
OF_MODELS = {"language_endpoint", "language_local"}  # tests/evaluation/test_language_examples.py


def test_no_example_is_left_out():
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES) | SHARED | OF_MODELS


@pytest.mark.parametrize("name", EXAMPLES, ids=lambda name: name if name in QUICK else f"more-{name}")
def test_examples_run(name, tmp_path, monkeypatch, capsys, request):
    path = str(ROOT / "examples" / f"{name}.py")
    if name == "real_priors":
        request.getfixturevalue("data_folder")  # skips where it is absent
    if name in NEEDS:  # in a process of its own: what these libraries change when they are imported is theirs
        if importlib.util.find_spec(NEEDS[name]) is None:
            pytest.skip(f"{NEEDS[name]} is not installed")
        command = [sys.executable, path, *EXAMPLES[name]]
        done = subprocess.run(command, cwd=tmp_path, env=with_path(ROOT), capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.strip()
        return
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.setattr("sys.argv", [name, *EXAMPLES[name]])
    runpy.run_path(path, run_name="__main__")
    assert capsys.readouterr().out.strip()
