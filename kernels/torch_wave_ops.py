"""The actions that a wave of attention is made of, each on memory it was given beforehand. Engine thread.

Hidden values are replaced bit by bit, never multiplied away, so that not even NaN or infinity gets through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from kernels.torch_step import Scratch


class Action(Protocol):
    """Something to do in every layer of a step."""

    def run(self) -> None:
        """Do it."""


@dataclass(frozen=True, slots=True)
class Part:
    """Softmax over some of the positions, per tile or pair: the largest score, the sum of exponents, the mean value.

    Shapes: `top` and `total` [kv_heads, n, tile_size, 1], `mean` [kv_heads, n, tile_size, value_width], or n first.
    """

    top: Tensor
    total: Tensor
    mean: Tensor

    @classmethod
    def take(cls, scratch: Scratch, name: str, shape: tuple[int, int, int, int]) -> Part:
        """Memory for `shape`, that of `mean`."""
        return cls(
            scratch.take(f"{name}_top", *shape[:3], 1),
            scratch.take(f"{name}_total", *shape[:3], 1),
            scratch.take(f"{name}_mean", *shape),
        )

    def transposed(self) -> Part:
        """The same with the first two dimensions exchanged."""
        return Part(*(x.transpose(0, 1) for x in (self.top, self.total, self.mean)))

    def cut(self, start: int, length: int) -> Part:
        """Of the second dimension [start, start + length)."""
        stop = start + length
        return Part(self.top[:, start:stop], self.total[:, start:stop], self.mean[:, start:stop])


@dataclass(frozen=True, slots=True)
class Keep:
    """Keeps the bits of `target` where `mask` has ones; the others become 0."""

    target: Tensor
    mask: Tensor

    def run(self) -> None:
        self.target.bitwise_and_(self.mask)


@dataclass(frozen=True, slots=True)
class Fill:
    """Puts the bits of `fill` into `target`, which has zeros there."""

    target: Tensor
    fill: Tensor

    def run(self) -> None:
        self.target.bitwise_or_(self.fill)


@dataclass(frozen=True, slots=True)
class Copy:
    """Copies, reordering and converting as the two views say."""

    source: Tensor
    out: Tensor

    def run(self) -> None:
        self.out.copy_(self.source)


@dataclass(frozen=True, slots=True)
class Scale:
    """Multiplies `target` by `factors`, which are as many or one for several."""

    target: Tensor
    factors: Tensor

    def run(self) -> None:
        self.target.mul_(self.factors)


@dataclass(frozen=True, slots=True)
class Gather:
    """out[i] = source[index[i]], both matrices."""

    source: Tensor
    index: Tensor
    out: Tensor

    def run(self) -> None:
        torch.index_select(self.source, 0, self.index, out=self.out)


@dataclass(frozen=True, slots=True)
class Product:
    """A batch of matrix products, out = a · b."""

    a: Tensor
    b: Tensor
    out: Tensor

    def run(self) -> None:
        torch.bmm(self.a, self.b, out=self.out)


@dataclass(frozen=True, slots=True)
class Softmax:
    """`weights` = softmax of each row of `scores`; `part` gets the largest score and the sum of exponents."""

    scores: Tensor
    weights: Tensor
    part: Part

    def run(self) -> None:
        torch.amax(self.scores, -1, keepdim=True, out=self.part.top)
        torch.softmax(self.scores, -1, out=self.weights)
        # the likeliest position weighs exp(0) / total
        torch.amax(self.weights, -1, keepdim=True, out=self.part.total)
        self.part.total.reciprocal_()


@dataclass(frozen=True, slots=True)
class Begin:
    """The first piece of some tiles is their state."""

    state: Part
    part: Part

    def run(self) -> None:
        self.state.top.copy_(self.part.top)
        self.state.total.copy_(self.part.total)
        self.state.mean.copy_(self.part.mean)


@dataclass(frozen=True, slots=True)
class Join:
    """A further piece of some tiles (online softmax, arXiv 1805.02867, kept normalised after each piece).

    Where a row sees nothing of the piece, its state keeps its bits. `top` and `factors` (state's, part's) are scratch.
    """

    state: Part
    part: Part
    top: Tensor
    factors: Tensor

    def run(self) -> None:
        state, part = self.state, self.part
        of_state, of_part = self.factors[0], self.factors[1]
        torch.maximum(state.top, part.top, out=self.top)
        torch.sub(state.top, self.top, out=of_state)
        torch.sub(part.top, self.top, out=of_part)
        self.factors.exp_()
        of_state.mul_(state.total)
        of_part.mul_(part.total)
        torch.add(of_state, of_part, out=state.total)
        self.factors.div_(state.total)  # exactly 1 and 0 where a row sees nothing of the piece
        state.top.copy_(self.top)
        state.mean.mul_(of_state)
        part.mean.mul_(of_part)
        state.mean.add_(part.mean)
