"""`MaskableEquivariantPolicy`: the equivariant policy for sb3-contrib's MaskablePPO."""

from __future__ import annotations

from typing import Any

from sb3_contrib.common.maskable import policies

from .policy import Equivariant

_Base: Any = policies.MaskableActorCriticPolicy
__all__ = ["MaskableEquivariantPolicy"]


class MaskableEquivariantPolicy(Equivariant, _Base):
    """For MaskablePPO: `MaskablePPO(MaskableEquivariantPolicy, env)`, observations in `features` form."""
