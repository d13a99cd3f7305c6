"""How each model is loaded: what is set for it stays set, over what is set for all, under flags and variables."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from engine.api import Device, KvType
from engine.errors import InvalidRequest
from studio.models.load_choices import SETTING_OF, LoadChoices
from studio.services.load_settings_store import LoadSettingsStore
from studio.services.settings_service import SettingsService

MODEL, OTHER = Path("/models/one.gguf"), Path("/models/two.gguf")
ALL = LoadChoices(
    pool_tokens=4096,
    parallel=2,
    threads=3,
    kv_type=KvType.F32,
    device=Device.CPU,
    preempt_ram_mib=64,
)


def a_store(folder: Path, environment: dict[str, str] | None = None) -> LoadSettingsStore:
    settings = SettingsService(
        folder / "settings.json", environment=environment or {}, flags={"engine.threads": 1}
    )
    return LoadSettingsStore(folder / "load.json", settings)


def test_choices_hold_for_their_model_only_and_survive_a_restart(tmp_path: Path) -> None:
    a_store(tmp_path).change(MODEL, ALL)
    store = a_store(tmp_path)
    assert store.choices(MODEL) == ALL
    options = store.options_for(MODEL)
    assert (options.pool_tokens, options.parallel, options.kv_type) == (4096, 2, KvType.F32)
    assert (options.device, options.preempt_ram_mib) == (Device.CPU, 64)
    assert store.options_for(OTHER).parallel == 4


def test_a_flag_and_a_variable_beat_them(tmp_path: Path) -> None:
    store = a_store(tmp_path, {"LAYBY_PARALLEL": "7"})
    store.change(MODEL, ALL)
    options = store.options_for(MODEL)
    assert (options.threads, options.parallel, options.pool_tokens) == (1, 7, 4096)
    assert store.fixed() == {"threads", "parallel"}


def test_every_choice_has_its_setting_for_all_so_that_a_flag_can_beat_it(tmp_path: Path) -> None:
    assert set(SETTING_OF) == {field.name for field in fields(LoadChoices)}
    store = a_store(tmp_path, {"LAYBY_KV_TYPE": "f16"})
    store.change(MODEL, ALL)
    assert store.options_for(MODEL).kv_type is KvType.F16


def test_what_a_model_has_of_its_own_is_told_by_setting_and_only_what_counts(
    tmp_path: Path,
) -> None:
    store = a_store(tmp_path, {"LAYBY_PARALLEL": "7"})
    store.change(MODEL, ALL)
    assert store.own_values(MODEL) == {
        "engine.ctx_size": 4096,
        "engine.kv_type": KvType.F32,
        "engine.device": Device.CPU,
        "park.ram_mib": 64,
    }
    assert store.own_values(OTHER) == {}


def test_what_is_not_chosen_follows_the_settings_for_all(tmp_path: Path) -> None:
    settings = SettingsService(tmp_path / "settings.json", environment={}, flags={})
    store = LoadSettingsStore(tmp_path / "load.json", settings)
    store.change(MODEL, LoadChoices(parallel=2))
    settings.change("engine.ctx_size", 1024)
    options = store.options_for(MODEL)
    assert (options.pool_tokens, options.parallel) == (1024, 2)
    store.change(MODEL, LoadChoices())
    assert store.options_for(MODEL).parallel == 4
    assert (tmp_path / "load.json").read_text().strip() == "{}"


def test_a_value_out_of_bounds_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    with pytest.raises(InvalidRequest, match="parallel is 0"):
        store.change(MODEL, LoadChoices(parallel=0))
    assert not (tmp_path / "load.json").exists()


def test_a_pool_that_a_model_was_given_is_kept_beside_its_other_choices(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    store.change(MODEL, LoadChoices(parallel=2))
    store.keep_pool(MODEL, 768)
    assert a_store(tmp_path).choices(MODEL) == LoadChoices(parallel=2, pool_tokens=768)
    fixed = a_store(tmp_path, {"LAYBY_CTX_SIZE": "512"})
    fixed.keep_pool(MODEL, 4096)
    assert fixed.choices(MODEL).pool_tokens == 768, "it would count at no load"


def test_choices_move_with_their_model(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    store.change(MODEL, ALL)
    store.move(MODEL, OTHER)
    assert (store.choices(MODEL), store.choices(OTHER)) == (LoadChoices(), ALL)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"a": 1}', '{"a": {"parallel": "x"}}', '{"a": {"kv_type": "f1"}}', '{"a": {"b": 1}}',
     '{"a": {"parallel": 0}}'],
)  # fmt: skip
def test_a_broken_file_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    (tmp_path / "load.json").write_text(text)
    assert a_store(tmp_path).choices(MODEL) == LoadChoices()
    assert (tmp_path / "load.json.broken").read_text() == text
    assert "kept as" in caplog.text
