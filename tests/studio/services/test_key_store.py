"""Keys: made once, told once, kept as digests that only the user may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from studio.models.errors import SettingError
from studio.models.server_keys import Caller, KeyPlan, Lane
from studio.services.key_store import SECRET_PREFIX, KeyStore

EDITOR = KeyPlan(name="editor", lane=Lane.BACKGROUND, share_percent=25, max_requests=2)


def test_a_key_opens_with_its_secret_only_and_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "config" / "keys.json"
    key, secret = KeyStore(path, clock=lambda: 5.0).create(EDITOR)
    again = KeyStore(path)
    assert again.keys == (key,)
    assert again.caller(secret) == Caller(
        key_id=key.key_id,
        name="editor",
        lane=Lane.BACKGROUND,
        share_percent=25,
        max_requests=2,
    )
    for wrong in ("", secret[:-1], secret + "x", secret.upper(), "none", "clé"):
        assert again.caller(wrong) is None


def test_the_secret_is_nowhere_on_disk_and_only_the_user_reads_the_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    _, secret = KeyStore(path).create(EDITOR)
    assert secret.startswith(SECRET_PREFIX)
    written = path.read_text()
    assert secret not in written
    assert secret.removeprefix(SECRET_PREFIX) not in written
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_revoked_key_opens_nothing_and_a_changed_one_keeps_its_secret(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys.json")
    told: list[int] = []
    store.changed.connect(lambda: told.append(len(store.keys)))
    key, secret = store.create(EDITOR)
    store.change(key.key_id, KeyPlan(name="agent", lane=Lane.INTERACTIVE))
    caller = store.caller(secret)
    assert caller is not None
    assert (caller.name, caller.lane, caller.max_requests) == ("agent", Lane.INTERACTIVE, 0)
    store.revoke(key.key_id)
    assert store.caller(secret) is None
    assert told == [1, 1, 0]


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (KeyPlan(name=" "), "the name has 0 characters"),
        (KeyPlan(name="x" * 61), "the name has 61 characters"),
        (KeyPlan(name="a", share_percent=0), "the share is 0 %"),
        (KeyPlan(name="a", max_requests=-1), "requests at once are -1"),
        (KeyPlan(name="Taken"), "called 'Taken' already"),
    ],
)
def test_what_is_not_allowed_is_named_and_nothing_is_written(
    tmp_path: Path, plan: KeyPlan, words: str
) -> None:
    store = KeyStore(tmp_path / "keys.json")
    store.create(KeyPlan(name="taken"))
    before = (tmp_path / "keys.json").read_bytes()
    with pytest.raises(SettingError, match=words):
        store.create(plan)
    assert (tmp_path / "keys.json").read_bytes() == before


@pytest.mark.parametrize("text", ["{", "[1]", '[{"lane": "fast"}]', "null"])
def test_a_broken_file_is_set_aside_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    store = KeyStore(path)
    assert store.keys == ()
    assert store.problem is not None
    assert "keys.json.broken" in str(store.problem)
    assert (tmp_path / "keys.json.broken").read_text() == text
