"""`MaskableEquivariantPolicy`: the equivariant policy for sb3-contrib's MaskablePPO.

Saved models name the class of this module: it must stay here.
"""

from __future__ import annotations

from typing import Any

from sb3_contrib.common.maskable import policies

from .policy import Equivariant

_Base: Any = policies.MaskableActorCriticPolicy


class MaskableEquivariantPolicy(Equivariant, _Base):
    """The equivariant policy for `MaskablePPO(MaskableEquivariantPolicy, env)`; see `policy.Equivariant`."""
