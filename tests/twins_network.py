"""The literal twin of the compiled passes of `agents.learned.policy.ArmNetwork`, all samples at once.

It is written in PyTorch, which finds its slopes by itself.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from agents.learned.policy import ArmNetwork
from bandit_envs import FEATURES

LOCAL = [FEATURES.index(name) for name in ("width", "margin", "score", "error", "doubt")]


def logits_and_context(network: ArmNetwork, x: Tensor) -> tuple[Tensor, Tensor]:
    """Logits of the arms (n, K), and the context (n, hidden), for features x (n, K * F)."""
    x = x.reshape(len(x), -1, len(FEATURES))
    pulls = -2 * torch.log(x[..., FEATURES.index("width")])  # ln(1 + n)
    fair = (pulls / x[..., FEATURES.index("pulls")].clamp_min(1e-6) - math.log(x.shape[1])).clamp_min(0)
    evidence = 4 / x[..., FEATURES.index("doubt")] - 4
    opened = torch.stack([evidence / (evidence + 15), pulls / (pulls + 8), fair / (fair + 5)], -1)
    codes = network.encoder(torch.cat([x, opened], -1))
    context = network.context(torch.cat([codes.mean(1), codes.amax(1)], 1))
    if network.surroundings is None:
        hidden = network.arm(network.own(torch.cat([x[..., LOCAL], opened], -1)))
    else:
        hidden = network.arm(codes) + network.surroundings(context)[:, None]
    n, rich = torch.exp(pulls) - 1, fair - math.log(100)
    p, q = network.prior
    shrunk = evidence * (n / (n + torch.exp(p + q * rich.clamp_max(3)))) ** 2
    a, b, c = network.slopes.weight[0]
    index = network.arm_logit(nn.functional.silu(hidden))[..., 0] + a * shrunk + b * pulls + c * pulls * rich
    return network.steep * (index - shrunk - pulls), context
