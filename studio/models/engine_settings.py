"""The settings of the model and how it is loaded. Plain values; any thread, no Qt."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.api import Device, KvType
from engine.options import CPU_VARIANTS, LEAST_POOL_TOKENS
from studio.models.setting_field import AppliesAt, SettingInfo, about


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """The model and how it is loaded."""

    model: str = field(
        default="",
        metadata=about(
            SettingInfo(
                title="Model",
                help="a path or a name in the library; the window loads it when it starts",
                env="LAYBY_MODEL",
                flags=("--model", "-m"),
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    ctx_size: int = field(
        default=0,
        metadata=about(
            SettingInfo(
                title="Pool size",
                help="tokens in the pool that all requests share; 0: what memory allows",
                env="LAYBY_CTX_SIZE",
                flags=("--ctx-size", "-c"),
                low=0,
                least=LEAST_POOL_TOKENS,
                high=1 << 31,
                unit="tokens",
                lowest="as memory allows",
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    kv_type: KvType = field(
        default=KvType.F16,
        metadata=about(
            SettingInfo(
                title="Keys and values",
                help="how the pool stores them: Q8_0 halves the memory of a pool, or doubles what memory allows; texts "
                "differ slightly from those of F16",
                env="LAYBY_KV_TYPE",
                flags=("--kv-type", "-ctk", "--cache-type-k", "-ctv", "--cache-type-v"),
                flags_agree=True,
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    parallel: int = field(
        default=4,
        metadata=about(
            SettingInfo(
                title="Requests at once",
                help="most requests that run at once; further ones wait in line",
                env="LAYBY_PARALLEL",
                flags=("--parallel", "-np"),
                low=1,
                high=256,
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    batch_size: int = field(
        default=256,
        metadata=about(
            SettingInfo(
                title="Tokens per step",
                help="most tokens computed in one step; long prompts are read in pieces of this",
                env="LAYBY_BATCH_SIZE",
                flags=("--batch-size", "-b"),
                low=16,
                high=8192,
                unit="tokens",
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    threads: int = field(
        default=0,
        metadata=about(
            SettingInfo(
                title="Threads",
                help="CPU threads for the kernels; 0: one per physical core",
                env="LAYBY_THREADS",
                flags=("--threads",),
                low=0,
                high=1024,
                lowest="one per core",
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    cpu_variant: str = field(
        default="auto",
        metadata=about(
            SettingInfo(
                title="CPU kernels",
                help="auto: native where built, else torch, which is several times slower; native; torch; or avx2 and "
                "the like",
                env="LAYBY_CPU_VARIANT",
                flags=("--cpu-variant",),
                names=CPU_VARIANTS,
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    device: Device = field(
        default=Device.AUTO,
        metadata=about(
            SettingInfo(
                title="Device",
                help="where the model runs; unless one is chosen, the fastest there is",
                env="LAYBY_DEVICE",
                flags=("--device",),
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    seed: int | None = field(
        default=None,
        metadata=about(
            SettingInfo(
                title="Seed",
                help="seed for requests that name none; empty draws one for each",
                env="LAYBY_SEED",
                flags=("--seed",),
                low=-(1 << 63),
                high=(1 << 64) - 1,
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    context_shift: bool = field(
        default=False,
        metadata=about(
            SettingInfo(
                title="Go on beyond the window",
                help="a reply that fills the model's window forgets the oldest half and goes on",
                env="LAYBY_CONTEXT_SHIFT",
                flags=("--context-shift",),
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    idle_unload_min: int = field(
        default=0,
        metadata=about(
            SettingInfo(
                title="Unload when idle",
                help="minutes without a request after which the model is unloaded; it comes back with the next one. "
                "0: never",
                env="LAYBY_IDLE_UNLOAD_MIN",
                flags=("--idle-unload",),
                low=0,
                high=1440,
                unit="min",
                lowest="never",
            )
        ),
    )
