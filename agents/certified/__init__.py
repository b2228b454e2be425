"""Agents that sample by the evidence against the nearest wrong instance, and stop when their answer is certified."""
