"""The models that come with the package: a card (JSON) each, and the weights (safetensors) of networks."""
