"""The compiled passes of the equivariant network: by hand, and against PyTorch's own."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from torch import Tensor
from twins_network import logits_and_context

from agents.learned.policy import ArmNetwork
from bandit_envs import FEATURES

F = len(FEATURES)


def features(n: int, K: int, equal: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random features (n, K * F); the first arms of each sample are equal."""
    x = np.random.default_rng(K).uniform(0.01, 0.99, (n, K, F))
    x[:, :equal] = x[:, :1]
    return torch.as_tensor(x.reshape(n, -1), dtype=dtype)


def network(hidden: int, context: bool, stop: bool = True) -> ArmNetwork:
    """A random network in double precision."""
    torch.manual_seed(hidden)
    made = ArmNetwork(F, hidden, stop, context, 4.0).double()
    with torch.no_grad():
        made.slopes.weight.normal_()
        made.prior.add_(0.3)
    return made


def test_by_hand():
    """Two arms, 3 and 0 pulls, errors of 1/(2 e^2) and 1/2, layers of zeros but for the last bias, .5.

    Of 9 pulls, so that ln((1 + scale) / K) = ln 5 and nu = e^(ln 5 - ln 100) = 1/20 where p = 0 and q = 1: the evidence
    2 counts with (3 / 3.05)^2. The logits are 4 (.5 - 2 (3 / 3.05)^2 - ln 4), and 4 (.5) of the arm without pulls.
    """
    made = ArmNetwork(F, 4, False, True, 4.0).double()
    with torch.no_grad():
        for weight in made.parameters():
            weight.zero_()
        made.arm_logit.bias.fill_(0.5)
        made.prior[1] = 1.0
    x = torch.zeros(1, 2, F, dtype=torch.float64)
    x[..., FEATURES.index("pulls")] = torch.tensor([math.log(4) / math.log(10), 0.0])
    x[..., FEATURES.index("width")] = torch.tensor([0.5, 1.0], dtype=torch.float64)
    x[..., FEATURES.index("doubt")] = torch.tensor([4 / 6, 1.0], dtype=torch.float64)
    logits, latent = made(x.flatten(1))
    assert logits.tolist()[0] == pytest.approx([4 * (0.5 - 2 * (3 / 3.05) ** 2 - math.log(4)), 2.0, -1e8], rel=1e-6)
    assert latent.tolist() == [[0.0] * 4]  # SiLU of 0


@pytest.mark.parametrize("context", [True, False])
@pytest.mark.parametrize(("hidden", "arms"), [(16, 10), (7, 2), (33, 5)])
def test_logits_and_slopes_are_those_of_pytorch(hidden, arms, context):
    """Equal arms among them, which share the slope of the maximum."""
    made, x = network(hidden, context), features(6, arms, equal=2)
    heads = ("value", "stop_logit")
    weights = [weight for name, weight in made.named_parameters() if name.partition(".")[0] not in heads]
    told, expected = made._arms(x), logits_and_context(made, x)
    factors = [torch.randn(one.shape, generator=torch.Generator().manual_seed(0)).double() for one in expected]
    found = []
    for one in (told, expected):
        loss = sum((each * factor).sum() for each, factor in zip(one, factors, strict=True))
        found.append(torch.autograd.grad(loss, weights))
    for mine, its in zip(told, expected, strict=True):
        assert torch.allclose(mine, its, rtol=1e-11, atol=1e-11)
    for mine, its in zip(*found, strict=True):
        assert torch.allclose(mine, its, rtol=1e-10, atol=1e-10)
        assert its.abs().max() > 0


@pytest.mark.parametrize("context", [True, False])
def test_single_precision_is_as_near_as_it_can_be(context):
    made, x = network(16, context), features(200, 10)
    exact, _ = made._arms(x)
    near, _ = made.float()._arms(x.float())
    assert (near.double() - exact).abs().max() < 1e-5 * exact.abs().max()


def test_a_sample_does_not_depend_on_its_batch():
    made, x = network(16, True).float(), features(37, 10, dtype=torch.float32)
    together = made._arms(x)
    for i in (0, 5, 36):
        for one, all_of_them in zip(made._arms(x[i : i + 1]), together, strict=True):
            assert torch.equal(one[0], all_of_them[i])
