"""Every setting is declared completely, and takes only values within its bounds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kernels.cpu
from engine.api import Device, LoadOptions
from engine.options import CPU_VARIANTS
from engine.runs import POLICY_NAMES, RESUME_NAMES
from studio.models.errors import SettingError
from studio.models.park_settings import ParkPolicy, ResumeOrder
from studio.models.setting_field import SettingField, SettingKind
from studio.models.settings import Settings, Theme, all_settings, setting_field


@pytest.mark.parametrize("entry", all_settings(), ids=lambda entry: entry.key)
def test_every_setting_has_words_a_variable_and_a_default_that_is_allowed(
    entry: SettingField,
) -> None:
    assert entry.info.title
    assert entry.info.help
    assert not entry.info.help.endswith(".")
    assert entry.info.env.startswith("LAYBY_")
    assert entry.check(entry.default, source="default") == entry.default
    assert Settings().value(entry.key) == entry.default
    if entry.kind is SettingKind.INTEGER:
        assert entry.info.low is not None
        assert entry.info.high is not None


def test_outside_names_are_unique() -> None:
    entries = all_settings()
    variables = [name for entry in entries for name in (entry.info.env, *entry.info.env_aliases)]
    flags = [flag for entry in entries for flag in entry.info.flags]
    assert len(set(variables)) == len(variables)
    assert len(set(flags)) == len(flags)


def test_the_flags_other_programs_rely_on_are_there() -> None:
    flags = {flag for entry in all_settings() for flag in entry.info.flags}
    assert flags >= {
        "-m", "--host", "--port", "-c", "--ctx-size", "-np", "--parallel", "-b", "--batch-size",
        "--threads", "--device", "--api-key", "--seed", "--preempt-ram", "--preempt-policy",
        "--preempt-async", "--preempt-disk", "--sse-ping-interval", "--context-shift",
    }  # fmt: skip


def test_bounds_of_the_engine_are_the_engines_own() -> None:
    for name, field in (
        ("pool_tokens", "ctx_size"),
        ("parallel", "parallel"),
        ("batch_tokens", "batch_size"),
    ):
        info = setting_field(f"engine.{field}").info
        for value in (info.low, info.high):
            LoadOptions(**{name: value})
    assert Settings().load_options() == LoadOptions()


def test_names_of_the_engine_are_the_engines_own() -> None:
    assert tuple(each.value for each in ParkPolicy) == POLICY_NAMES
    assert tuple(each.value for each in ResumeOrder) == RESUME_NAMES


def test_every_instruction_set_of_the_native_kernels_can_be_asked_for() -> None:
    source = Path(kernels.cpu.__file__).with_name("variants.cpp").read_text(encoding="utf-8")
    sets = re.findall(r"{&(\w+)::TABLE", source)
    assert ("auto", "native", "torch", *sets) == CPU_VARIANTS
    assert setting_field("engine.cpu_variant").info.names == CPU_VARIANTS


def test_what_tests_may_twist_is_hidden_and_nothing_else_is() -> None:
    hidden = {entry.key for entry in all_settings() if entry.info.is_hidden}
    twists = {entry.key for entry in all_settings() if entry.group == "park_test"}
    kept_by_the_window = {
        f"window.{name}"
        for name in (
            "keys", "recent_commands", "was_told_of_tray", "has_sidebar", "has_pool_panel", "place", "export_folder",
        )
    }  # fmt: skip
    assert hidden == twists | kept_by_the_window


def test_settings_of_parking_reach_the_engine() -> None:
    settings = Settings()
    for key, value in (
        ("park.ram_mib", -1),
        ("park.policy", "cost"),
        ("park.is_async", False),
        ("park.folder", "/tmp/../tmp/parked"),
        ("engine.context_shift", True),
        ("park_test.every_tokens", 8),
        ("park_test.planner", "off"),
        ("park_test.fail_save", 1),
        ("park_test.granularity", 64),
        ("park_test.resume", "pass"),
        ("park_test.copies", True),
    ):
        settings = settings.with_value(key, value)
    assert settings.load_options() == LoadOptions(
        preempt_ram_mib=-1,
        preempt_policy="cost",
        preempt_async=False,
        preempt_disk=Path("/tmp/../tmp/parked").absolute(),
        context_shift=True,
        test_preempt_every=8,
        test_preempt_planner=False,
        test_preempt_fail_save=1,
        test_preempt_granularity=64,
        test_preempt_resume="pass",
        test_preempt_copy=True,
    )


def test_a_changed_copy_leaves_the_original_alone() -> None:
    settings = Settings()
    changed = settings.with_value("server.port", 0)
    assert (settings.server.port, changed.server.port) == (8484, 0)
    assert changed.server.server_settings().port == 0


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("engine.ctx_size", " 4096 ", 4096),
        ("engine.ctx_size", "0", 0),
        ("engine.seed", "", None),
        ("engine.seed", "-1", -1),
        ("engine.device", "CUDA", Device.CUDA),
        ("appearance.theme", "dark", Theme.DARK),
        ("server.is_enabled", "Yes", True),
        ("server.is_enabled", "0", False),
        ("server.api_key", "s3cret", "s3cret"),
    ],
)
def test_text_becomes_a_value(key: str, text: str, value: object) -> None:
    assert setting_field(key).parse(text, source="X") == value


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("engine.parallel", "0", "X is 0; give a whole number from 1 to 256"),
        ("engine.ctx_size", "10", "X is 10; give a whole number from 32 to 2147483648, or 0"),
        ("engine.parallel", "many", "X is 'many'; give a whole number from 1 to 256"),
        ("engine.device", "tpu", "X is 'tpu'; give one of auto, cpu, cuda, mps"),
        ("server.port", "65536", "X is 65536; give a whole number from 0 to 65535"),
        (
            "park_test.granularity",
            "7",
            "X is 7; give a whole number from 0 to 2147483648, a multiple of 32",
        ),
        (
            "engine.cpu_variant",
            "sse9",
            "X is 'sse9'; give one of auto, native, torch, avx512bf16, avx512vnni, avx2vnni, avx2, i8mm, "
            "dotprod, portable",
        ),
        ("server.is_enabled", "maybe", "X is 'maybe'; give on or off"),
    ],
)
def test_text_that_means_no_value_says_what_would(key: str, text: str, words: str) -> None:
    with pytest.raises(SettingError) as raised:
        setting_field(key).parse(text, source="X")
    assert str(raised.value) == words


@pytest.mark.parametrize("value", [True, 4.0, "4", None, 1 << 40])
def test_a_value_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(SettingError):
        setting_field("engine.parallel").check(value, source="X")


def test_a_secret_is_not_repeated_in_its_error() -> None:
    with pytest.raises(SettingError) as raised:
        setting_field("server.api_key").check(123456, source="X")
    assert "123456" not in str(raised.value)


def test_an_unknown_setting_is_an_error_of_the_caller() -> None:
    with pytest.raises(KeyError):
        Settings().with_value("server.colour", 1)
