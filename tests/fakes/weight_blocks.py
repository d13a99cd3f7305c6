"""Made-up blocks of the weight formats, for those that `gguf` cannot quantise to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernels.quant import BLOCK_FORMATS, dequantize

SCALE_PLACES = {
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
    "IQ4_NL": (0,),
    "IQ4_XS": (0,),
}


def random_blocks(storage: str, shape: tuple[int, ...], seed: int) -> NDArray[np.uint8]:
    """Any bits for codes and small scales; values about as large as `ModelWeights` makes them."""
    rng = np.random.default_rng(seed)
    form = BLOCK_FORMATS[storage]
    count = form.num_bytes(shape) // form.block_bytes
    blocks = rng.integers(0, 256, (count, form.block_bytes), np.uint8)
    if storage == "MXFP4":
        blocks[:, 0] = rng.integers(118, 122, count)
    scales = rng.uniform(0.5, 1, count)
    for _ in range(2):  # once to see how large the values are, then so that they are as wanted
        for at in SCALE_PLACES.get(storage, ()):
            blocks[:, at : at + 2] = scales.astype(np.float16).view(np.uint8).reshape(-1, 2)
        values = dequantize(blocks.reshape(-1), storage, shape)
        scales *= 1 / np.sqrt(shape[-1]) / values.std()
    return blocks.reshape(-1)
