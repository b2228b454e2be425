"""bandit-envs: pure-exploration bandit problems as Gymnasium environments. Importing registers them.

The names below are the public face. What an author of agents, problems or arm laws needs is among them: checks of what
users hand in, compilation of kernels, and random numbers.
"""

from __future__ import annotations

from .arms import LAWS, Arms, Bernoulli, Categorical, Gaussian, Resampled, Tabulated, Uniform, register_law
from .belief import beta_below
from .catalogue import ENVIRONMENTS, register_problem
from .checks import choice, errors_of, flag, install_hint, integer, integers, interval, mask, number, numbers
from .compiled import inlined, jit, lean, part, view
from .datasets import Captions, captions
from .drawing import image, limits_of
from .env import PureExplorationEnv, fresh_root
from .episodes import FeatureTable
from .evidence import (
    BERNOULLI,
    GAUSSIAN,
    STUDENT,
    Certifier,
    arm_cost,
    arm_penalty,
    arm_value,
    bernoulli_value,
    divergence,
    enough,
    nearest_way,
    own_numbers,
    pair_alternative,
    pair_bounds,
    pair_cost,
    pair_value,
    report_pair,
)
from .geometry import Polyhedron
from .history import History, entries_of, tally
from .instances import Instance, Sampler, from_table
from .kernels import Kernel, assemble, episode_kernel, fleeting, kernel, slot_kernel
from .lookahead import Lookahead, LookaheadModel, LookaheadRoom, Potential, relative_gains
from .lookup import INSTANCES, register_instance
from .naming import parse_call, unknown
from .observations import FEATURES
from .playing import BLOCK, Block, Playing, Quiet, block_of_pulls, player, pull, pull_once, spend
from .polyhedra import Polyhedra
from .problems import PROBLEMS, AllGood, BestArm, Feasible, Problem, SetProblem, Threshold, TopK
from .problems.base import Measure
from .problems.certificates import Deviation, Samples, at_boundary, cutoff, deviations
from .prompts import PromptSelection
from .registry import Registry
from .rng import EPISODES_LIMIT, PULLS_LIMIT, agent_uniform, agent_uniforms, root_number
from .routines import call_routine, carray, pointer, routine
from .sampling import updated
from .simulator import ENDED, LIVE, MOST_TIMES, Simulation
from .tables import Measurement, Measurements, measurements
from .task import Task
from .vector import PureExplorationVectorEnv
from .views import View, Viewer, arms_that_matter, boundary_of, outline

__version__ = "0.1.0"
__all__ = [
    # the environments, their arms and their problems
    "ENVIRONMENTS", "INSTANCES", "LAWS", "PROBLEMS", "AllGood", "Arms", "Bernoulli", "BestArm", "Captions",
    "Categorical", "Feasible", "Gaussian", "Instance", "Polyhedra", "Polyhedron", "Problem", "PromptSelection",
    "PureExplorationEnv", "PureExplorationVectorEnv", "Resampled", "Sampler", "Tabulated", "Task", "Threshold", "TopK",
    "Uniform", "captions", "from_table",
    # for authors: problems, laws and instances of one's own, registries of one's own
    "Registry", "SetProblem", "register_instance", "register_law", "register_problem",
    # measurements in files
    "Measurement", "Measurements", "measurements",
    # checks of what users hand in, and names with parameters
    "choice", "errors_of", "flag", "install_hint", "integer", "integers", "interval", "mask", "number", "numbers",
    "parse_call", "unknown",
    # compilation, and whole episodes in compiled code
    "BLOCK", "ENDED", "LIVE", "Block", "Kernel", "Measure", "Playing", "Quiet", "Simulation", "assemble",
    "block_of_pulls", "call_routine", "carray", "episode_kernel", "fleeting", "inlined", "jit", "kernel", "lean",
    "part", "player", "pointer", "pull", "pull_once", "routine", "slot_kernel", "spend", "view",
    # evidence against the nearest instance on which an answer is wrong
    "BERNOULLI", "GAUSSIAN", "STUDENT", "Certifier", "arm_cost", "arm_penalty", "arm_value", "bernoulli_value",
    "divergence", "enough", "nearest_way", "own_numbers", "pair_alternative", "pair_bounds", "pair_cost", "pair_value",
    "report_pair",
    # beliefs and the look-ahead potential
    "Lookahead", "LookaheadModel", "LookaheadRoom", "Potential", "relative_gains",
    # pictures of episodes
    "View", "Viewer", "arms_that_matter", "boundary_of", "image", "limits_of", "outline",
    # random numbers
    "agent_uniform", "agent_uniforms", "fresh_root", "root_number",
    # limits, statistics, features and histories, and what statistics tell of the k best arms
    "EPISODES_LIMIT", "FEATURES", "FeatureTable", "History", "MOST_TIMES", "PULLS_LIMIT", "Deviation", "Samples",
    "at_boundary", "beta_below", "cutoff", "deviations", "entries_of", "tally", "updated",
]  # fmt: skip
