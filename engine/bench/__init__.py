"""Measures a model, its parks and the machine, from inside the engine; for `layby bench`."""
