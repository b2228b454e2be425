"""The agents: one registry of names, from which `make`, documentation, tests and `bandit-envs list` derive.

A row is text, "module:name", so that an algorithm is imported when it is first asked for.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gymnasium import spaces

from bandit_envs import PROBLEMS, PureExplorationVectorEnv, Registry, Task
from bandit_envs.envs import NUMBERS
from bandit_envs.kernels import choice, errors_of, flag, parse_call, spelled, unknown

from .core.agent import Agent, asked, task_of
from .core.certified import CERTIFICATE, OPTIONS, Featured, certified
from .core.forms import Forms, forms_of, reads_pending, refuse_other_observations, warn_of_ranks, warn_of_task
from .core.parameters import check_values, taken
from .core.wrapped import behind, wrappers_of

ALIASES = {"md-apt": "apt", "md-ucbe": "ucbe", "md-sar": "sar"}
LEARNED_MODELS = "agents.learned"  # the module that reads models from their files
MODELS = (".safetensors", ".zip")  # ends of files of saved models
FILES = (*MODELS, ".json")  # and of the parameters of `evolved`


def _check(name: str, found: object) -> None:
    """Refuse what makes no agents."""
    of, solves, oracles = f"the agent {name!r:.200}", getattr(found, "solves", ()), getattr(found, "oracles", {})
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        raise ValueError(f"{of} must define {' and '.join(missing)}")
    if isinstance(solves, str) or not isinstance(solves, Collection):
        raise ValueError(f"solves of {of} must be a collection of problems' names, one at least, got {solves!r:.200}")
    if not isinstance(oracles, Mapping) or not all(isinstance(one, str) and callable(oracles[one]) for one in oracles):
        text = f"oracles of {of} must be a dict of functions of the problem and the true means,"
        raise ValueError(f"{text} got {oracles!r:.200}")
    if not callable(found) and not _predicts(found):
        text = f"{of} must be a subclass of agents.Agent, a function of a task,"
        raise ValueError(f"{text} or an object with a method predict, got {found!r:.200}")


def _predicts(found: object) -> bool:
    """Whether this is an object, and no class, with a method `predict`."""
    return not isinstance(found, type) and callable(getattr(found, "predict", None))


AGENTS: Registry[Any] = Registry(
    "agent",
    "bandit_envs.agents",
    _check,
    {
        "uniform": "agents.baselines:Uniform",
        "random": "agents.baselines:Random",
        "lsa": "agents.thresholding.lsa:LSA",
        "apt": "agents.thresholding.apt:APT",
        "ucbe": "agents.thresholding.ucbe:UCBE",
        "sar": "agents.thresholding.sar:SAR",
        "static": "agents.thresholding.static:Static",
        "offline": "agents.thresholding.offline:Offline",
        "opt-kg": "agents.thresholding.opt_kg:OptKG",
        "dp-index": "agents.thresholding.dp_index:DPIndex",
        "hdoc": "agents.thresholding.hdoc:HDoC",
        "st2": "agents.all_good.st2:ST2",
        "two-step": "agents.all_good.two_step:TwoStep",
        "fareast": "agents.all_good.fareast:Fareast",
        "east": "agents.all_good.elimination:East",
        "uniform-elimination": "agents.all_good.elimination:UniformElimination",
        "ucb": "agents.all_good.oracles:UCB",
        "apt-oracle": "agents.all_good.oracles:APTOracle",
        "lucb": "agents.top_k.lucb:LUCB",
        "median-elimination": "agents.top_k.median_elimination:MedianElimination",
        "direct": "agents.top_k.direct:Direct",
        "incremental": "agents.top_k.incremental:Incremental",
        "halving": "agents.top_k.halving:Halving",
        "adaptive-top-k": "agents.top_k.adaptive_top_k:AdaptiveTopK",
        "improved-top-k": "agents.top_k.improved_top_k:ImprovedTopK",
        "opt-mai": "agents.top_k.opt_mai:OptMAI",
        "racing": "agents.top_k.racing:Racing",
        "pi1": "agents.top_k.adapt:Pi1",
        "pi2": "agents.top_k.adapt:Pi2",
        "pi3": "agents.top_k.adapt:Pi3",
        "adapt": "agents.top_k.adapt:Adapt",
        "ocba-m": "agents.top_k.ocba_m:OCBAm",
        "clucb": "agents.top_k.clucb:CLUCB",
        "kl-lucb": "agents.top_k.kl_lucb:KLLUCB",
        "lil-ucb": "agents.top_k.lil_ucb:LilUCB",
        "ugape": "agents.top_k.ugape:UGapE",
        "successive-rejects": "agents.top_k.successive_rejects:SuccessiveRejects",
        "sequential-halving": "agents.top_k.sequential_halving:SequentialHalving",
        "batched-elimination": "agents.top_k.batched_elimination:BatchedElimination",
        "kt": "agents.top_k.knockout:KT",
        "fbkt": "agents.top_k.knockout:FBKT",
        "gsp": "agents.top_k.survivors:GSP",
        "pass": "agents.top_k.survivors:PASS",
        "dunnett": "agents.control.fixed_designs:Dunnett",
        "bonferroni": "agents.control.fixed_designs:Bonferroni",
        "holm": "agents.control.fixed_designs:Holm",
        "jamieson-jain": "agents.control.jamieson_jain:JamiesonJain",
        "evidence": "agents.certified.evidence:Evidence",
        "track-and-stop": "agents.certified.track_and_stop:TrackAndStop",
        "top-two": "agents.certified.top_two:TopTwo",
        "tri-bbai": "agents.certified.bbai:TriBBAI",
        "opt-bbai": "agents.certified.bbai:OptBBAI",
        "paired-elimination": "agents.certified.paired_elimination:PairedElimination",
        "sysrs": "agents.tables.sysrs:SySRs",
        "ucb-e": "agents.tables.ucb_e:UCBE",
        "ucb-e-lrf": "agents.tables.ucb_e_lrf:UCBELRF",
        "agentopt-elimination": "agents.tables.agentopt:AgentOptElimination",
        "agentopt-lucb": "agents.tables.agentopt:AgentOptLUCB",
        "look-ahead": "agents.look_ahead:LookAhead",
        "evolved": "agents.evolved.agent:Evolved",
        "ppo": "agents.models.cards:PPO",
    },
    reserved=ALIASES,
    refused=lambda name: "must not end as paths of models, " + ", ".join(FILES) if name.endswith(FILES) else None,
)
LEARNED = ("ppo",)  # networks, which take longer than all others


def register(name: str, target: object) -> None:
    """Add an agent of one's own under a name, which is then taken wherever an agent's name is.

    An installed package adds its agents by entry points of the group `bandit_envs.agents` instead.

    Args:
        name: letters, digits, "-", "_" and "."; it does not end in ".zip" and the like, which stand for saved models.
        target: a subclass of `Agent`; a function that makes an agent from a task; or text that names one of these,
            "module:Class", which is imported when the name is first used.

    Raises:
        ValueError: for a name that belongs to an agent of this package or of an installed one, and for what is no
            agent.
    """
    if isinstance(name, str) and name in ALIASES:
        raise ValueError(f"{name!r} is another name of the agent {ALIASES[name]!r}: choose another one")
    AGENTS.register(name, target)


def names(problem: str | None = None) -> list[str]:
    """Names that `make` accepts, of the agents that solve `problem` (None: of all).

    An agent of an installed package that cannot be imported is left out, with a warning; and so are, silently, learned
    agents for problems of which no model is stored.
    """
    if problem is not None:
        PROBLEMS.find(problem)
    found = []
    for name in AGENTS:
        try:
            solves = recipe_of(name).solves
        except ValueError as error:
            warnings.warn(f"the agent {name!r} is left out: {error}", RuntimeWarning, stacklevel=2)
            continue
        if problem is None or problem in solves and problem in getattr(AGENTS[name], "ready_for", solves):
            found.append(name)
    return found


@dataclass(frozen=True)
class Recipe:
    """How an agent is made, whatever stands for it.

    `target`: a subclass of `Agent`, or a function of the task; or an object with a method `predict`: an `Agent` is made
    again for each task, and a model plays as it is.
    """

    name: str  # of the agent, for messages
    label: str  # for tables: the text given, or the name
    target: Any
    parameters: Mapping[str, Any] = field(default_factory=dict)
    made: tuple[Any, Any, Forms] | None = None  # what `paired` returns, where it has been made already

    def forms(self, env_kwargs: Mapping[str, object] | None = None) -> Forms:
        """The forms that the agent takes part in, see `forms_of`, as far as they are known before one is made."""
        if self.parameters.get("stop") is not None:  # certified agents read the statistics
            return Forms("full", "statistics")
        if _predicts(self.target):
            warn_of_ranks(self.target, env_kwargs or {})
            return forms_of(self.target, env_kwargs)
        observation = str(getattr(self.target, "observation", "statistics"))
        return Forms("arm" if observation in NUMBERS else "full", observation)

    @property
    def solves(self) -> Collection[str]:
        """The problems that the agent is known to solve; none for a function that does not say."""
        return getattr(self.target, "solves", ())

    @property
    def needs(self) -> list[str]:
        """What the agent must be given beside the statistics, in words."""
        own = getattr(self.target, "needs", "") or ("" if getattr(self.target, "anytime", True) else "the budget")
        truth = [f"the true {name}" for name in getattr(self.target, "oracles", {})]
        return [str(own), *truth] if own else truth

    @property
    def source(self) -> str:
        """Where the agent was published."""
        return str(getattr(self.target, "source", ""))

    def given(self, parameters: Mapping[str, object]) -> dict[str, Any]:
        """The parameters and further ones, which come before them; words of earlier versions, in files, are read."""
        allowed: Collection[str] = taken(self._maker()) or ()
        if "stop" in {*self.parameters, *parameters} and "stop" not in allowed:
            allowed = OPTIONS
        return spelled(self.parameters, allowed) | spelled(parameters, allowed)

    def _errors(self, part: str = "") -> AbstractContextManager[None]:
        """Name the agent, or a part of it, in errors that arise inside, unless it comes with this package."""
        maker = type(self.target) if isinstance(self.target, Agent) else self.target
        ours = (getattr(maker, "__module__", None) or "").startswith("agents.") or self._is_model
        return nullcontext() if ours else errors_of(f"{part}the agent {self.name!r}")

    @property
    def _is_model(self) -> bool:
        return _predicts(self.target) and not isinstance(self.target, Agent)

    def _maker(self) -> Callable[..., Any]:
        """What makes the agent from a task and its parameters."""
        if isinstance(self.target, Agent):
            return self.target.for_task
        if not self._is_model:
            return self.target  # type: ignore[no-any-return]
        ours = type(self.target).__module__.startswith("agents.") and hasattr(self.target, "for_task")
        return lambda task: self.target.for_task(task) if ours else self.target

    def paired(self, envs_in: Callable[[Forms], Any], env_kwargs: Mapping[str, object]) -> tuple[Any, Any, Forms]:
        """The agent, its environment in the forms that go with it, and these forms.

        What a function makes is known only once it has been made: where the forms were others, it is made again.
        `envs_in` makes the environment in these forms, `env_kwargs` are its keywords.
        """
        if self.made is not None:
            return self.made
        forms = self.forms(env_kwargs)
        for _ in range(2):
            envs = envs_in(forms)
            try:
                agent = self.make(envs)
                if envs.task.waits and not isinstance(agent, Agent) and not reads_pending(agent):
                    envs.close()  # it knows nothing of pending results: they are imagined
                    forms = Forms("full", "statistics")
                    envs = envs_in(forms)
                    return Featured(envs.task, agent), envs, forms
                if self._is_model:
                    refuse_other_observations(self.name, agent, envs)
            except BaseException:
                envs.close()
                raise
            if (found := forms_of(agent, env_kwargs)) == forms:
                if self._is_model:
                    warn_of_task(self.name, agent, envs, env_kwargs)
                return agent, envs, forms
            envs.close()
            forms = found
        raise ValueError(f"{self.name} makes agents that take part in other forms than that of the task it is given")

    def make(self, env_or_task: object, **parameters: object) -> Any:
        """The agent for an environment or a task; see `agents.make`."""
        task, given, maker = task_of(env_or_task), self.given(parameters) | parameters, self._maker()
        allowed = taken(maker)
        if "stop" in given and "stop" not in (allowed or ()):
            if "stop" in self.parameters and "stop" in parameters:
                both = f"{self.parameters['stop']!r:.80} in the name, {self.label:.200}, and {parameters['stop']!r:.80}"
                raise ValueError(f"stop is given twice: {both} as an argument; leave one out")
            return self._certified(env_or_task, task, given, allowed or ())
        if allowed is not None and (surplus := sorted(set(given) - set(allowed))):
            takes = f"it takes {', '.join(allowed)}" if allowed else "it takes none"
            raise ValueError(f"{self.name} has no parameter {surplus[0]!r}; {takes}")
        truth = self._truth(env_or_task, task, given)
        check_values(self.name, {**getattr(self.target, "keywords", {}), **given})  # those of a `partial` too
        with self._errors():
            agent = maker(task, **given, **truth)
        if not _predicts(agent):
            raise ValueError(f"{self.name} makes no agent: {agent!r:.200} has no method predict")
        _refuse_other_arms(self.name, agent, task)
        wrappers = [] if isinstance(env_or_task, Task) else wrappers_of(env_or_task)
        base = getattr(env_or_task, "unwrapped", None)
        if isinstance(envs := getattr(base, "envs", base), PureExplorationVectorEnv):
            envs.advises = False
        if not wrappers:
            agent = behind(agent)
        if isinstance(agent, Agent):
            if wrappers:
                raise ValueError(
                    f"{self.name} reads the observations and the actions of the environment itself, and "
                    f"{_name_of(wrappers[0])} changes them: give it the environment without this wrapper, or its task"
                )
            if not hasattr(agent, "task"):
                raise TypeError(f"the constructor of {type(agent).__name__} must begin with super().__init__(task)")
            if truth:
                agent.told = frozenset(truth)
            for said in agent.cautions():
                warnings.warn(said, UserWarning, stacklevel=3)
        return agent

    def _truth(self, env_or_task: object, task: Task, given: Mapping[str, object]) -> dict[str, Any]:
        """What an oracle is given of the fixed instance of an environment, but for the parameters that are given."""
        oracles, again = getattr(self.target, "oracles", {}), isinstance(self.target, Agent)
        if again:
            oracles = {key: find for key, find in oracles.items() if key in self.target.told}
        if not oracles or task.problem not in self.solves:
            return {}
        if getattr(self.target, "by_place", False) and getattr(asked(env_or_task, "setting"), "shuffle_arms", False):
            if again:
                order = "arms that come in the same order in every episode (shuffle_arms=False)"
                raise ValueError(f"{self.name} is an oracle of {order}")
            return {}
        if not hasattr(instance := asked(env_or_task, "instance"), "arms"):  # episodes have instances of their own
            return {}
        problem, truth = task.make_problem(), {}
        for key, find in oracles.items():
            if key not in given:
                with self._errors(f"the oracle of {key!r} of "):
                    truth[key] = find(problem, instance.arms.means)
        return truth

    def _certified(self, env_or_task: object, task: Task, given: dict[str, Any], allowed: Collection[str]) -> Any:
        """The agent with the parameter `stop`: "certificate", or None, which leaves the agent its own rule."""
        how = given.pop("stop")
        if how is None:
            return replace(self, parameters=given).make(env_or_task)
        choice("stop", how, (CERTIFICATE,))
        options = {name: given.pop(name) for name in OPTIONS if name in given}
        if options.get("delta") is not None and "delta" in allowed:
            given["delta"] = options["delta"]
        recipe = replace(self, parameters=given)
        within = recipe.forms()
        if within.observation == "history":
            reads = f"and {self.name} reads observation='history'"
            raise ValueError(f"stop={CERTIFICATE!r} needs an agent that reads statistics or features, {reads}")
        reader = within.actions == "arm" and within.observation != "statistics"
        agent = recipe.make(within._replace(stop=True).of(task) if reader else env_or_task)
        made = certified(task, agent, options)
        for said in made.cautions():
            warnings.warn(said, UserWarning, stacklevel=4)
        return made


def _evolved(path: str) -> Callable[[Any], Any]:
    """A function that makes `evolved` with the parameters on the card that `evolve` has written."""
    from .models.cards import parameters_on, read_card  # late, for `import agents` loads no model

    kind = AGENTS["evolved"]
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no card of parameters {path}")
    try:
        card = read_card(Path(path))
        if card["algorithm"] != "evolved":
            raise ValueError(f"its algorithm is {card['algorithm']!r:.80}")
        parameters = parameters_on(card)
    except (ValueError, KeyError, TypeError) as error:
        text = f"{path} is no card of parameters, as `bandit-envs train --algorithm evolved` writes it:"
        raise ValueError(f"{text} {f'it has no {error}' if isinstance(error, KeyError) else error!s:.200}") from error

    def made(task: Any) -> Any:
        return kind(task, parameters=kind.read_parameters(task, parameters))

    vars(made).update(name=kind.name, solves=kind.solves, source=kind.source, anytime=kind.anytime)
    return made


def _refuse_other_arms(name: str, agent: object, task: Task) -> None:
    """Refuse a model of another number of arms, unless its policy takes any: actions 0 .. K - 1, maybe one to stop."""
    model = getattr(agent, "model", agent)  # of Stable-Baselines3, which an agent that has learned holds
    space, able = getattr(model, "action_space", None), getattr(getattr(model, "policy", None), "any_arms", False)
    if able or not isinstance(space, spaces.Discrete) or task.pull != "arm":
        return
    if (arms := int(space.n) - forms_of(agent, {"stop": task.can_stop}).stop) != task.K:
        text = f"{name} was trained with K = {arms} arms, and the task has K = {task.K}: a policy that takes any"
        raise ValueError(f"{text} K is agents.learned.EquivariantPolicy, with which `bandit-envs train` trains")


def recipe_of(agent: object, trust: bool = False) -> Recipe:
    """How an agent is made, whatever stands for it.

    Args:
        agent: text: a name of `names()`, "module:Class", or the path of a saved model, all possibly with parameters; a
            class; a function of the task; an `Agent`; any other object with a method `predict`; a `Recipe`.
        trust: load saved models that hold pickles, too.

    Raises:
        ValueError: for what is none of these, for an unknown name, with the nearest ones, and for files of others.
        FileNotFoundError: for a saved model that is not there.
    """
    if isinstance(agent, Recipe):
        return agent
    if isinstance(agent, str):
        name, parameters = (agent, {}) if agent.endswith(FILES) else parse_call(agent)
        if name.endswith(MODELS):
            learned: Any = importlib.import_module(LEARNED_MODELS)  # with PyTorch
            return Recipe(name, agent, learned.load(name, trust=flag("trust", trust)), parameters)
        if name.endswith(".json"):
            return Recipe(name, agent, _evolved(name), parameters)
        name = ALIASES.get(name, name)
        if ":" not in name and name not in AGENTS:
            raise unknown("agent", name, [*AGENTS, *ALIASES])
        found = recipe_of(AGENTS.find(name))
        return Recipe(name, agent, found.target, {**found.parameters, **parameters})
    name = _name_of(agent)
    if isinstance(agent, functools.partial) and not agent.args and isinstance(agent.func, type):
        name = _name_of(agent.func)
        return Recipe(name, name, agent.func, agent.keywords)
    if not callable(agent) and not _predicts(agent):
        text = "an agent's name is text; an agent may also be a class, a function of the task,"
        raise ValueError(f"{text} or an object with a method predict; got {agent!r:.200}")
    if _predicts(agent):
        name = getattr(agent, "name", None) or type(agent).__name__.lower()
    else:
        _check(name, agent)
    return Recipe(name, name, agent)


def recipes_of(agents: object, trust: bool = False) -> dict[str, Recipe]:
    """How several agents are made, by label: the key of a dict, the text given, or a name, numbered where it is taken.

    `agents`: one of those that `recipe_of` takes, a list of them, or a dict {label: one of them}; a ValueError for
    none, and for a label or a text that is there twice.
    """
    if isinstance(agents, (Mapping, list, tuple)) and not agents:
        raise ValueError(f"evaluate needs at least one agent, got {agents!r}")
    labels: dict[str, Recipe] = {}
    if isinstance(agents, Mapping):
        labels = {str(label): recipe_of(agent, trust) for label, agent in agents.items()}
        if len(labels) < len(agents):
            raise ValueError(f"the labels of agents are text, and two of them are alike: {list(agents)!r:.200}")
        return labels
    many = list(agents) if isinstance(agents, (list, tuple)) and not callable(agents) else [agents]
    texts = {agent for agent in many if isinstance(agent, str)}
    for agent in many:
        if isinstance(agent, str) and agent in labels:
            raise ValueError(f"agent {agent!r} is given twice")
        recipe, n = recipe_of(agent, trust), 1
        label = recipe.label
        while not isinstance(agent, str) and (label in labels or label in texts):
            n += 1
            label = f"{recipe.label}-{n}"
        labels[label] = recipe
    return labels


def _name_of(target: object) -> str:
    """The name of a class of agents, or of a function that makes them."""
    names = (getattr(target, attribute, None) for attribute in ("name", "__name__"))
    return next((name for name in names if isinstance(name, str)), type(target).__name__)


def make(name: object, env_or_task: object, *, trust: bool = False, **parameters: object) -> Any:
    """The agent for an environment or a task: an `Agent`, or a learned one.

    Args:
        name: a name of `names()`, or "module:Class" for a class that is imported, either possibly with parameters:
            "apt(tolerance=0.05)"; the path of a saved model, or of the parameters of `evolved`, .json; a class;
            or a function that makes an agent from a task.
        env_or_task: an environment (single or vector, wrapped or not, or an SB3 VecEnv) or a `Task`. An environment
            with a fixed instance also fills in what oracle agents must know of the truth.
        trust: load a saved model that others than this package have written, too: its maker may run any code.
        **parameters: the algorithm's own; they override those in the name.

    Of parameters that were given and change nothing for this task, a `UserWarning` says so.

    Raises:
        ValueError: for an unknown name (with the nearest ones), a learned agent of which no model is stored for the
            task (saying how to train one), an agent that does not solve the problem (naming those
            it does), unknown parameters or values out of range, oracles without their truth, and a saved model that
            needs `trust`.
        FileNotFoundError: for a saved model that is not there.
    """
    return recipe_of(name, trust).make(env_or_task, **parameters)
