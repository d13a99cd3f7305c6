"""A simulator of the scheduler on a virtual clock: real decisions, no tensors. Imports engine.core only."""
