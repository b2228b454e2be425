"""Learned agents: an SB3 `VecEnv`, an equivariant policy, training, loading. Imported on use: needs PyTorch and SB3."""

from bandit_envs.kernels import install_hint

try:
    import safetensors  # noqa: F401
    import stable_baselines3  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(f"learned agents need PyTorch and SB3: {install_hint('training')}") from error

from .model import Trained, load
from .policy import ArmExtractor, EquivariantPolicy
from .training import train
from .vec_env import NativeVecEnv, make_vec_env

__all__ = ["ArmExtractor", "EquivariantPolicy", "NativeVecEnv", "Trained", "load", "make_vec_env", "train"]
