"""Arms, named instances, samplers, public data and tables of measurements."""

from .ab_tests import ABTests
from .arms import (
    DISTRIBUTIONS,
    Arms,
    Bernoulli,
    Categorical,
    Gaussian,
    Resampled,
    Shared,
    Tabulated,
    Uniform,
    ends_of,
    register_distribution,
)
from .datasets import Captions, captions
from .files import unswept, wells_of_plate
from .instance import Instance, Sampler, from_table
from .lookup import INSTANCES, Pools, Varied, register_instance
from .polyhedra import Polyhedra
from .prompts import PromptSelection, ScoreTables
from .registry import Registry, names_alone
from .strata import SPANS, Strata, day_of, strata_of, uneven
from .tables import (
    DAYS,
    MISSING,
    NUMBERS,
    SAID,
    TRUE,
    WORDS,
    Count,
    Happening,
    Measurement,
    Measurements,
    cells_of,
    measurements,
    number_in,
    repeated,
    rows_of,
    weighted,
    within,
)

__all__ = [
    "ABTests", "Count", "DAYS", "Happening", "Arms", "Bernoulli", "Captions", "Categorical", "DISTRIBUTIONS",
    "Gaussian", "INSTANCES", "Instance", "Measurement", "MISSING", "Measurements", "NUMBERS", "Polyhedra", "Pools",
    "PromptSelection", "Registry", "Resampled", "Sampler", "SAID", "SPANS", "ScoreTables", "Shared", "Strata", "TRUE",
    "Tabulated", "Uniform", "Varied", "WORDS", "captions", "cells_of", "day_of", "ends_of", "from_table",
    "measurements", "names_alone", "number_in", "register_distribution", "register_instance", "repeated", "rows_of",
    "strata_of", "uneven", "unswept", "weighted", "wells_of_plate", "within",
]  # fmt: skip
