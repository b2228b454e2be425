"""Pure-exploration bandits in words, served by OpenEnv."""

from .client import BanditEnv
from .models import BanditAction, BanditObservation

__all__ = ["BanditAction", "BanditEnv", "BanditObservation"]
