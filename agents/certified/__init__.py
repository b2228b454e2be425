"""Agents that sample by the evidence against the nearest wrong instance, and stop when their answer is certified.

`CertifiedPolicy` with a `sampling_rule` of one's own is such an agent, see docs/own-agent.md.
"""

from .policy import CertifiedPolicy, Episode, closest, held, lacking, sampling_rule

__all__ = ["CertifiedPolicy", "Episode", "closest", "held", "lacking", "sampling_rule"]
