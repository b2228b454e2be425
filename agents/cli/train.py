"""`bandit-envs train`."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

import agents

from ..evaluation.environment import environment_id
from ..evaluation.report import interval, signed_interval, table
from .environment import EnvironmentCommand, Options
from .options import from_json, noted, refuse_to_overwrite

WIDEST = 120  # characters of an environment in a table


class Train(EnvironmentCommand[Options], of="train", without="env_kwargs pulls_per_action checkpoints held_out"):
    r"""Train an agent by reinforcement learning, or evolve an index; write the model and its card.

    What only one algorithm has is given by --hyperparameters: `population` of evolved, `learning_rate` of the others.
    Without --out the model is results/ALGORITHM.

    Examples:
      bandit-envs train Threshold --seconds 60 --out ppo
      bandit-envs train Threshold --algorithm ppo --instance "sampler(arms=20)" --budget 400 --steps 1000000 \
          --hyperparameters learning_rate=0.001
      bandit-envs train TopK --algorithm evolved --instance "sampler(arms=20)" --k 5 --budget 1000 --seconds 120
      bandit-envs train Threshold --algorithm evolved --mix '[{"budget": 200}, {"budget": 1000, "episodes": 100}]'
    """

    env_id: Positional[Annotated[str, arg(metavar="ENVIRONMENT")]] = "bandit_envs/Threshold-v0"
    seeds: int | None = None
    hyperparameters: Annotated[tuple[str, ...], arg(metavar="KEY=VALUE ...", help_behavior_hint="")] = ()
    """Of the algorithm."""
    force: bool = False
    """Overwrite model and card."""
    progress: bool = True

    def run(self) -> None:
        env_id, kwargs = environment_id(self.env_id), self.env_kwargs()
        out = Path("results") / self.algorithm if self.out is None else Path(self.out)
        out = out.with_suffix("") if out.suffix in (".safetensors", ".zip") else out
        model, former, card = (out.with_name(out.name + suffix) for suffix in (".safetensors", ".zip", ".json"))
        given = dict(_assignment(text) for text in self.hyperparameters)
        given |= {} if self.mix is None else {"mix": from_json("mix", self.mix)}
        given |= {"trust": True} if self.trust else {}
        given |= {name: one for name in ("num_envs", "seeds", "resume") if (one := getattr(self, name)) is not None}
        common: dict[str, Any] = {"seconds": self.seconds, "seed": self.seed, "env_kwargs": kwargs, "out": out}
        common["progress"] = self.progress  # lines, which a file can take as well as a terminal
        if self.out is None:
            out.parent.mkdir(exist_ok=True)
        if self.algorithm == "evolved":
            from ..evolved.evolution import evolve_by

            refuse_to_overwrite([card], self.force)
            made = evolve_by(env_id, self.steps, **common, **given)[1]
            print(f"{_losses(made)}\n\nwrote {card}")
            return
        refuse_to_overwrite([model, former, card], self.force)  # a zip of this name goes
        with noted():
            trained = agents.train(self.algorithm, env_id, steps=self.steps, **common, **given)
            results = trained.card["result"] if "mix" in trained.card else [trained.card["result"]]
            for i, result in enumerate(results):
                print("\n" * (i > 0) + _comparison(self.algorithm, result))
        print(f"\nwrote {model}, {card} and {out.with_name(out.name + '.png')}")


def _comparison(name: str, result: Mapping[str, Any]) -> str:
    """What the card of a training says of the agent beside the reference agents."""
    rows, measured = result["agents"], []
    metrics = [metric for metric, value in rows[name].items() if isinstance(value, dict)]
    cut = any(row.get("truncated", 0.0) > 0 for row in rows.values())
    for agent, row in rows.items():
        pulls, rate = f"{row['total_pulls']:,.1f}", f"{row['error_rate']:.4f}"
        truncated = [f"{row.get('truncated', 0.0):.4f}"] if cut else []
        measured.append([agent, pulls, rate, *truncated, *(interval(**row[metric]) for metric in metrics)])
    heads = [f"{metric.replace('_', ' ')} [95 %]" for metric in metrics]
    episodes = f"{result['episodes']:,} episodes of seed {result['root']}, which it has not seen"
    most = f"; they are cut after {result['max_pulls']:,} pulls" if cut else ""
    where = textwrap.shorten(f"; {result['env_kwargs']}", WIDEST) if "env_kwargs" in result else ""  # one of a mix
    text = f"{name} on {episodes}{most}{where}:\n\n"
    shown = ["agent", "pulls", "error rate", *(["truncated"] if cut else []), *heads]
    text += table(shown, measured, right=range(1, len(shown)))
    differences = [
        [f"{name} less {agent}", *(signed_interval(**one[metric]) for metric in metrics)]
        for agent, one in result["differences"].items()
    ]
    paired = table(["agents", *heads], differences, right=range(1, 1 + len(heads)))
    return f"{text}\n\nPaired differences on these episodes:\n\n{paired}"


def _losses(card: Mapping[str, Any]) -> str:
    """The loss of the parameters on the card of an evolution, as a multiple of the loss that it began with."""
    rows = []
    for one in card["result"]:
        where = ", ".join(f"{key}={value!r}" for key, value in one["env_kwargs"].items())
        losses = [f"{one[name]:.4g}" for name in ("loss", "untrained", "start")]
        ratio = interval(one["ratio"], one["low"], one["high"])
        rows.append([textwrap.shorten(where, WIDEST) or "as it is", f"{one['episodes']:,}", *losses, ratio])
    lost = "mean pulls" if card["rival"] == "evidence" else "mean loss"
    head = ["environment", "episodes", lost, "untrained", f"of {card['rival']}", f"ratio to {card['rival']} [95 %]"]
    text = f"evolved on episodes that it has not seen:\n\n{table(head, rows, right=range(1, 6))}"
    if card["generations"] == 0:
        text += "\n\nnote: no generation fitted into the time, so these parameters are untrained: give more --seconds"
    return text


def _assignment(text: str) -> tuple[str, Any]:
    """The name and the value of "name=value"; the value is a Python literal, else the text itself."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"--hyperparameters takes name=value, got {text!r}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
