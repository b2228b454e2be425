"""What every algorithm builds on: the agent, its three shapes, confidence widths, tournament trees."""
