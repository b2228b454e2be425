"""Agents that compare arms with a control."""
