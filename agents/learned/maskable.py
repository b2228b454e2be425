"""`MaskableEquivariantPolicy`: the equivariant policy for sb3-contrib's MaskablePPO."""

from __future__ import annotations

from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from .policy import Equivariant

__all__ = ["MaskableEquivariantPolicy"]


class MaskableEquivariantPolicy(Equivariant, MaskableActorCriticPolicy):
    """For MaskablePPO: `MaskablePPO(MaskableEquivariantPolicy, env)`, observations in `features` form."""
