"""Algorithms for the k best arms."""

from .adapt import Adapt, Pi1, Pi2, Pi3
from .adaptive_top_k import AdaptiveTopK
from .clucb import CLUCB
from .direct import Direct
from .halving import Halving
from .improved_top_k import ImprovedTopK
from .incremental import Incremental
from .kl_lucb import KLLUCB
from .lil_ucb import LilUCB
from .lucb import LUCB
from .median_elimination import MedianElimination
from .ocba_m import OCBAm
from .opt_mai import OptMAI
from .racing import Racing

__all__ = [
    "CLUCB",
    "KLLUCB",
    "LUCB",
    "Adapt",
    "AdaptiveTopK",
    "Direct",
    "Halving",
    "ImprovedTopK",
    "Incremental",
    "LilUCB",
    "MedianElimination",
    "OCBAm",
    "OptMAI",
    "Pi1",
    "Pi2",
    "Pi3",
    "Racing",
]
