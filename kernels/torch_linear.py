"""Linear layers in tiles of 16 rows: products of one shape, [16, in] x [in, out], however many rows there are.

On the CPU the weight is kept as oneDNN packs it for 16 rows: three times as fast as `torch.mm` on the machine this was
measured on (AMD, AVX-512, 2 threads, torch 2.13: [16, 576] x [576, 3072] 0.22 against 0.59 ms from memory). The ops for
that are not a public interface of torch, so where they are absent, and on other devices, `torch.mm` takes their place.
Engine thread.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.lowering import LinearGroup
from kernels.torch_step import TILE_ROWS, Step, Workspace


class TileWeight(Protocol):
    """A weight ready to be multiplied with."""

    def multiply(self, tile: Tensor) -> Tensor:
        """tile [TILE_ROWS, in], contiguous -> tile · weightᵀ + bias [TILE_ROWS, out], new memory."""


class OneDnnWeight:
    """Packed by oneDNN; the given weight is not kept."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight, TILE_ROWS)
        self._bias = bias
        self._linear = torch.ops.mkldnn._linear_pointwise.default

    def multiply(self, tile: Tensor) -> Tensor:
        product: Tensor = self._linear(tile, self._packed, self._bias, "none", [], "")
        return product


class PlainWeight:
    """The weight for any device, with rows of zeros up to a multiple of 16: products of odd widths were found to treat
    the rows of a tile differently."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._num_out = weight.shape[0]
        padding = -self._num_out % TILE_ROWS
        self._transposed = (F.pad(weight, (0, 0, 0, padding)) if padding else weight).t()
        self._bias = bias

    def multiply(self, tile: Tensor) -> Tensor:
        out = torch.mm(tile, self._transposed)[:, : self._num_out]
        return out if self._bias is None else out.add_(self._bias)


def has_onednn() -> bool:
    """Whether this build of torch can pack weights for the CPU."""
    names = ("_reorder_linear_weight", "_linear_pointwise")
    return torch._C._has_mkldnn and all(hasattr(torch.ops.mkldnn, name) for name in names)


def prepare_weight(weight: Tensor, bias: Tensor | None) -> TileWeight:
    """The fastest form of a float32 weight [out, in] on its device."""
    if weight.device.type == "cpu" and has_onednn():
        return OneDnnWeight(weight, bias)
    return PlainWeight(weight, bias)


class LinearOp:
    """One group of linear layers. The residual is added to the finished sum, as it is copied to its place."""

    def __init__(self, group: LinearGroup, weight: TileWeight, workspace: Workspace) -> None:
        self.name = "+".join(member.weight.name for member in group.members)
        self.x = group.x
        self._residual = group.residual
        self.weight = weight
        self._x_is_contiguous = workspace.placement(group.x).is_contiguous
        self.out = group.out

    def run(self, step: Step) -> None:
        tiles = step.tiles(self.x)
        outs = step.tiles(self.out)
        if not self._x_is_contiguous:
            tiles = tuple(tile.contiguous() for tile in tiles)
        multiply = self.weight.multiply
        if self._residual is None:
            for tile, out in zip(tiles, outs, strict=True):
                out.copy_(multiply(tile))
        else:
            for tile, residual, out in zip(tiles, step.tiles(self._residual), outs, strict=True):
                torch.add(multiply(tile), residual, out=out)
