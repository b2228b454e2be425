"""The models that come with the package: a card (JSON) for each, and the weights (npz) of a network beside it."""
