"""The pages that the code makes: of the environments, of the classes of algorithms, and tables of other pages.

python docs/generate.py writes them all.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium import spaces

import agents
from agents.core import ALL_PROBLEMS, Problems
from agents.registry import AGENTS, ALIASES, LEARNED, recipe_of
from bandit_envs import ENVIRONMENTS, INSTANCES, PROBLEMS, Instance

__all__ = ["MADE", "pages"]

DOCS = Path(__file__).parent
FOLDER = DOCS / "problems"
SHIPPED = [name for name in PROBLEMS if PROBLEMS[name].__module__.startswith("bandit_envs.")]
FORMS = (
    ("statistics", "arm"),
    ("features", "arm"),
    ("history", "arm"),
    ("statistics", "full"),
)  # of observations and actions
SHARED_PAGES = {  # pages of several agents, or not of the name of theirs
    "algorithms/adapt.md": ("pi1", "pi2", "pi3"),
    "algorithms/elimination.md": ("east", "uniform-elimination"),
    "algorithms/explore-m.md": ("direct", "incremental", "halving"),
    "algorithms/bbai.md": ("tri-bbai", "opt-bbai"),
    "algorithms/fixed-designs.md": ("dunnett", "bonferroni", "holm"),
    "algorithms/rivals.md": ("ucb", "apt-oracle"),
    "learned.md": ("ppo",),
    "tables.md#agents": (
        *("paired-elimination", "sysrs", "ucb-e", "ucb-e-lrf", "agentopt-elimination", "agentopt-lucb"),
    ),
}
CLASSES = """# Classes of the algorithms

One section for each file. The names are those of `agents.make`. Every class takes a task or an environment first.
The parameters `delta`, `sigma`, `width`, `c` and `seed` mean the same in all classes, unless one says otherwise: see
`Agent` in the [reference](api.md). What is certified is described once, at `CertifiedAlgorithm`."""
GIVEN = ("threshold", "epsilon", "slack", "k", "tolerance", "delta")  # what the table of instances names
METRICS = {  # what the metrics of a verdict are
    "misclassified": "number of arms that are wrongly in the answer or wrongly left out",
    "precision": "share of the answer that is right",
    "recall": "share of the right arms that are in the answer",
    "f1": "harmonic mean of precision and recall",
    "aggregate_regret": "mean of the best k means, less that of the selected ones",
    "normalised_sum": "sum of the selected means: 1 for the best k, 0 for the worst k",
    "misidentified": "selected arms that are not among the best k",
}


def pages() -> dict[str, str]:
    """The text of each page, by its problem."""
    return {name: _page(name) for name in SHIPPED}


def _page(name: str) -> str:
    problem, env_id = PROBLEMS[name], f"bandit_envs/{name}-v{PROBLEMS[name].version}"
    said = inspect.getdoc(problem) or ""
    before, _, after = said.partition("\n\nArgs:")
    rest = re.split(r"\n\n(?=\S)", after, maxsplit=1)[1:]
    text = "\n\n".join([before, *rest])
    parts = [
        f"# {name}\n\n`{env_id}`, for learners `{ENVIRONMENTS[name].learn_id}`: {problem.asks}. ({problem.source})",
        _picture(name),
        text,
        f'```python\nimport gymnasium as gym\n\nimport bandit_envs\n\nenv = gym.make("{env_id}")\n```',
        _game(name),
        f"## Parameters\n\n{_parameters(problem)}\n\nAnd those [of all environments](../environments.md).",
        f"## Actions and observations\n\nWithout arguments, {_default(problem)}:\n\n{_spaces(env_id)}",
        f"## What comes back\n\n{_metrics(problem)}",
        f"## Instances\n\n{_instances(name)}",
        f"## Agents\n\n{_agents(name)}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _picture(name: str) -> str:
    """The moving picture of an agent that plays, where there is one."""
    path = Path(__file__).parent / "pictures" / f"{name.lower()}.gif"
    return f"![an episode of {name}, pull by pull](../pictures/{path.name})" if path.exists() else ""


def _game(name: str) -> str:
    """The game of a reader against an agent, on a page of its own that stands in this one."""
    page = f"play-{name.lower()}.html"
    style = "width: 100%; height: 700px; border: 1px solid #8886; border-radius: 10px"
    frame = f'<iframe src="../{page}" title="a game of {name}" loading="lazy" style="{style}"></iframe>'
    link = f'<p><a href="../{page}">The game on a page of its own</a></p>'
    how = "Ten arms, a hundred pulls: [how it is made](../pictures.md#play-against-an-agent)."
    return f"## Play it\n\n```{{raw}} html\n{frame}\n{link}\n```\n\n{how}"


def _default(problem: Any) -> str:
    count = "10 Bernoulli arms with uniform means, drawn afresh in each episode"
    return f"{count}, and a budget of {problem.defaults['budget']} pulls"


def _parameters(problem: Any) -> str:
    lines = ["| parameter | default | what it is |", "|---|---|---|"]
    taken = inspect.signature(problem).parameters
    for name, sentence in problem.parameters.items():
        default = problem.defaults.get(name, taken[name].default)
        lines.append(f"| `{name}` | `{default!r}` | {sentence} |")
    return "\n".join(lines)


def _spaces(env_id: str) -> str:
    lines, of_actions = ["| observation, actions | entry | shape | type | range |", "|---|---|---|---|---|"], []
    for observation, actions in FORMS:
        env = gym.make(env_id, observation=observation, actions=actions, disable_env_checker=True)
        of = f'observation="{observation}"'
        if actions == "arm":
            lines += _rows(f"`{of}`", env.observation_space)
        if observation == "statistics":
            of_actions += _rows(f'`actions="{actions}"`', env.action_space)
        env.close()
    return "\n".join(lines + of_actions)


def _rows(of: str, space: spaces.Space[Any]) -> list[str]:
    if isinstance(space, spaces.Dict):
        return [line.replace("| |", f"| `{key}` |", 1) for key, one in space.items() for line in _rows(of, one)]
    kind = str(space.dtype)
    if isinstance(space, spaces.Box):
        low, high = (f"{float(x):.4g}" for x in (space.low.min(), space.high.max()))
        return [f"| {of} | | {space.shape} | {kind} | {low} .. {high} |"]
    if isinstance(space, spaces.Discrete):
        return [f"| {of} | | () | {kind} | 0 .. {int(space.n) - 1} |"]
    return [f"| {of} | | {space.shape} | {kind} | 0 .. 1 |"]


def _metrics(problem: Any) -> str:
    lines = ["`info` at the end of an episode, beside those of [all environments](../environments.md):", ""]
    lines += ["| key | type | what it is |", "|---|---|---|"]
    lines += [f"| `{key}` | {kind.__name__} | {METRICS[key]} |" for key, kind in problem.metric_types.items()]
    return "\n".join(lines)


def _instances(name: str) -> str:
    made = {key: INSTANCES[key] for key in INSTANCES if getattr(INSTANCES[key], "problem", "") in (name, "")}
    own = [f"`{key}`" for key, one in made.items() if one.problem == name]
    others = [f"`{key}`" for key, one in made.items() if one.problem == ""]
    own_ones = f"Made for this problem: {', '.join(own)}. " if own else ""
    return f"{own_ones}For all problems: {', '.join(others)}. See [instances](../instances.md)."


def _agents(name: str) -> str:
    """The agents that solve the problem, with what they need; their pages are those of docs/front/agents.md."""
    other = {target: alias for alias, target in ALIASES.items()}
    lines = ["| agent | needs | source |", "|---|---|---|"]
    for agent in agents.names(name):
        recipe = recipe_of(agent)
        alias = f" (`{other[agent]}`)" if name == "Feasible" and agent in other else ""
        lines.append(f"| {_link(agent)}{alias} | {', '.join(recipe.needs) or 'nothing'} | {recipe.source} |")
    return "\n".join(lines) + "\n\n[Which agent should I use?](../which-agent.md)"


def _link(agent: str) -> str:
    """The name of an agent, which leads to its page where there is one."""
    page = next((page for page, names in SHARED_PAGES.items() if agent in names), f"algorithms/{agent}.md")
    return f"[`{agent}`](../{page})" if (DOCS / page.partition("#")[0]).exists() else f"`{agent}`"


def table_of_agents() -> str:
    """All agents: what they solve, what they need, where they are from."""
    other = {target: alias for alias, target in ALIASES.items()}
    lines = ["| agent | solves | needs | source |", "|---|---|---|---|"]
    for agent in [*AGENTS, *(name for name in LEARNED if name not in AGENTS)]:
        recipe = recipe_of(agent)
        alias = f" (`{other[agent]}`)" if agent in other else ""
        solves = (
            "all" if recipe.solves is ALL_PROBLEMS else ", ".join(name for name in recipe.solves if name in SHIPPED)
        )
        solves += ", local ones" if recipe.solves is not ALL_PROBLEMS and isinstance(recipe.solves, Problems) else ""
        lines.append(f"| {_link(agent)}{alias} | {solves} | {', '.join(recipe.needs) or 'nothing'} | {recipe.source} |")
    return "\n".join(lines) + "\n"


def table_of_instances() -> str:
    """All names of instances: their parameters, their arms where no file is needed, what they were made for."""
    lines = ["| name | parameters | arms | made for | source |", "|---|---|---|---|---|"]
    for name in INSTANCES:
        row = INSTANCES[name]
        given = ", ".join(f"`{one}`" for one in inspect.signature(row.build).parameters)
        made = None if row.data or name in ("table", "pools", "varied") else row.build()
        afresh = made is not None or name in ("pools", "varied", "real-prompts")
        arms = _arms(made.arms) if isinstance(made, Instance) else "drawn afresh" if afresh else "of a file"
        own = made.defaults.get(row.problem, {}) if isinstance(made, Instance) else {}
        stated = {key: value for key, value in own.items() if isinstance(value, int | float) and key in GIVEN}
        wanted = ", ".join(f"{key} {value:g}" for key, value in stated.items())
        problem = f"{row.problem or 'all'}{': ' if wanted else ''}{wanted}"
        source = re.split(r"[;:] parameters? ", row.source)[0]
        lines.append(f"| `{name}` | {given} | {arms} | {problem} | {source} |")
    return "\n".join(lines).replace("  |", " |") + "\n"


def _arms(arms: Any) -> str:
    """A few words on arms, and their means where they are few."""
    K, means = len(arms.means), arms.means
    where = f" in {means.shape[1]} dimensions" if means.ndim > 1 else ""
    listed = " ".join(f"{mean:.4g}" for mean in means) if means.ndim == 1 and K <= 10 else ""
    ends = f"{means.max():.3g} to {round(means.min(), 9) + 0:.3g}" if means.ndim == 1 and not listed else ""
    return f"{K} {arms.distribution}{where}: {listed or ends}".removesuffix(": ")


def classes() -> str:
    """The page of the classes of algorithms, a section for each file."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for agent in (name for name in AGENTS if name not in LEARNED):
        kind = recipe_of(AGENTS.find(agent)).target
        kinds.setdefault(kind.__module__, {}).setdefault(kind.__qualname__, []).append(agent)
    parts = [CLASSES]
    for module in sorted(kinds):
        parts.append(f"## `{module}`")
        parts.append(", ".join(f"`{agent}`" for found in kinds[module].values() for agent in found))
        found = "\n\n".join(f".. autoclass:: {module}.{kind}" for kind in kinds[module])
        parts.append(f"```{{eval-rst}}\n{found}\n```")
    return "\n\n".join(parts) + "\n"


def numbers() -> str:
    """The table of the front page, read from the results that stand on the other pages."""
    papers = [row.split(" | ") for row in _rows_of("figures/sentences.md", r"\| [^|]+, \w+ \d{4} \|")]
    sentences, holds, fails, left = (sum(int(row[place].split()[0]) for row in papers) for place in (1, 2, 5, 6))
    learned = _rows_of("learned-results/papers.md", r"\| \w+: instance|\| `[\w.()=-]+`, ")
    zero_shot = [row for row in learned if "apt-oracle" not in row and re.search(r"(better|level|worse) \|$", row)]
    better, worse = (sum(row.endswith(f" {word} |") for row in zero_shot) for word in ("better", "worse"))
    stops = [
        float(row.split("|")[2])
        for path in sorted(DOCS.glob("figures/fixed-confidence-*/values.md"))
        for row in _rows_of(str(path.relative_to(DOCS)), r"\| Evidence \|")
    ]
    (speed,) = _rows_of("performance.md", r"\| APT / LSA \| 10 \|")
    gains = [float(row.split("|")[3]) for row in _rows_of("training.md", r"\| \w+ \| \.\d+ \| \+")]
    made = [
        (f"{len(AGENTS) + len(LEARNED)} agents, {len(SHIPPED)} problems", "in the package", "agents.md"),
        (
            f"{holds} of {sentences - left}",
            f"testable sentences of five papers hold here ({fails} fail at every point, others are mixed or open)",
            "reproduces.md",
        ),
        (
            f"{min(stops):g} to {max(stops):g}",
            f"times the lower bound: pulls of `evidence` until a certificate at δ = .1 ({len(stops)} instances)",
            "figures/fixed-confidence.md",
        ),
        (
            f"{len(zero_shot) - worse} of {len(zero_shot)}",
            f"cells of the papers' instances: `evolved` no worse than the best handcrafted agent (better in {better})",
            "learned-results.md#the-papers-instances",
        ),
        (
            f"+{min(gains):.3f} to +{max(gains):.3f}",
            "score of Stable-Baselines3's PPO over uniform sampling, after a minute on each of the five problems",
            "training.md#with-sb3-alone",
        ),
        (
            f"{speed.split('|')[5].split('/')[0].strip()} million",
            "pulls of APT per second and core, in `agents.evaluate` with 10 arms and 1,000 episodes",
            "performance.md#benchmarks",
        ),
    ]
    heads = {path: re.search("^# (.+)$", (DOCS / path.partition("#")[0]).read_text(), re.M)[1] for *_, path in made}
    lines = [f"| **{number}** | {what} | [{heads[path]}](../{path}) |" for number, what, path in made]
    return "\n".join(["| number | what it is | where it comes from |", "|---|---|---|", *lines]) + "\n"


def _rows_of(page: str, start: str) -> list[str]:
    """The rows of a page's tables that begin so."""
    return [line for line in (DOCS / page).read_text().splitlines() if re.match(start, line)]


MADE = {  # what is written beside the pages of the environments
    "front/numbers.md": numbers,
    "front/promises.md": (DOCS.parent / "agents" / "promises.md").read_text,
    "front/agents.md": table_of_agents,
    "front/instances.md": table_of_instances,
    "api-algorithms.md": classes,
}


def main() -> None:
    """Write the pages."""
    for folder in (FOLDER, DOCS / "front"):
        folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / f"{name}.md").write_text(text)
    for name, make in MADE.items():
        (DOCS / name).write_text(make())


if __name__ == "__main__":
    main()
