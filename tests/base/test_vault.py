from __future__ import annotations

import base64
import hmac
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from largesse.base.errors import StartError
from largesse.base.settings import Settings, load_settings
from largesse.base.vault import SIGNATURE_BYTES, SealBroken, Vault, load_vault

OLD, NEW, OTHER = bytes(range(32)), bytes(range(32, 64)), bytes(range(64, 96))
codes = st.binary(min_size=10, max_size=10)


@given(st.binary(max_size=100), st.binary(max_size=50))
def test_what_was_sealed_opens_in_its_context(secret: bytes, context: bytes) -> None:
    vault = Vault((NEW,))
    sealed = vault.seal(secret, context)
    assert vault.open(sealed, context) == secret
    with pytest.raises(SealBroken):
        vault.open(sealed, context + b"x")


def test_nothing_of_the_secret_shows_and_no_two_seals_are_alike() -> None:
    vault = Vault((NEW,))
    seals = {vault.seal(b"a secret of some length", b"") for _ in range(100)}
    assert len(seals) == 100
    assert not any(b"secret" in sealed for sealed in seals)


@given(st.binary(min_size=1, max_size=40), st.data())
def test_any_changed_bit_is_noticed(secret: bytes, data: st.DataObject) -> None:
    vault = Vault((NEW, OLD))
    sealed = bytearray(vault.seal(secret, b"line/1"))
    at = data.draw(st.integers(0, len(sealed) * 8 - 1))
    sealed[at // 8] ^= 1 << at % 8
    with pytest.raises(SealBroken):
        vault.open(bytes(sealed), b"line/1")


@given(st.binary(max_size=60))
def test_any_other_bytes_are_refused(sealed: bytes) -> None:
    with pytest.raises(SealBroken):
        Vault((NEW,)).open(sealed, b"")


@given(st.integers(0, 31))
def test_sealed_bytes_cut_short_are_refused(length: int) -> None:
    vault = Vault((NEW,))
    with pytest.raises(SealBroken):
        vault.open(vault.seal(b"", b"")[:length], b"")


@given(codes)
def test_older_keys_open_and_the_newest_seals(code: bytes) -> None:
    before, after = Vault((OLD,)), Vault((NEW, OLD))
    assert after.open(before.seal(code, b"c"), b"c") == code
    assert after.code_of_token(before.token(code)) == code
    assert before.lookup(code) in after.lookups(code)
    assert after.lookup(code) == Vault((NEW,)).lookup(code)
    with pytest.raises(SealBroken):
        before.open(after.seal(code, b"c"), b"c")
    with pytest.raises(SealBroken):
        before.code_of_token(after.token(code))


@given(codes)
def test_a_code_has_one_token_and_it_does_not_show_the_code(code: bytes) -> None:
    vault = Vault((NEW,))
    token = vault.token(code)
    assert vault.token(code) == token
    assert len(token) == 40
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert vault.code_of_token(token) == code
    assert code not in base64.urlsafe_b64decode(token)


@given(codes, st.data())
def test_a_token_with_another_character_is_refused(code: bytes, data: st.DataObject) -> None:
    vault = Vault((NEW, OLD))
    token = vault.token(code)
    at = data.draw(st.integers(0, 39))
    character = data.draw(st.characters().filter(lambda c: c != token[at]))
    with pytest.raises(SealBroken):
        vault.code_of_token(token[:at] + character + token[at + 1 :])


@given(st.text(max_size=60) | st.text(alphabet="ABCabc012-_=+/", min_size=38, max_size=42))
def test_any_other_text_is_no_token(text: str) -> None:
    with pytest.raises(SealBroken):
        Vault((NEW,)).code_of_token(text)


def test_a_token_of_another_installation_is_refused() -> None:
    with pytest.raises(SealBroken):
        Vault((NEW,)).code_of_token(Vault((OTHER,)).token(bytes(10)))


@given(codes)
def test_lookups_fit_a_bigint(code: bytes) -> None:
    assert all(-(2**63) <= number < 2**63 for number in Vault((NEW, OLD)).lookups(code))


def test_a_vault_needs_a_key() -> None:
    with pytest.raises(ValueError, match="master key"):
        Vault(())


class TestLoading:
    """Where the master key comes from."""

    @pytest.fixture
    def settings(self, tmp_path: Path) -> Settings:
        return replace(load_settings({}), data_dir=tmp_path / "data")

    def test_one_is_generated_once_for_an_embedded_database(self, settings: Settings) -> None:
        sealed = load_vault(settings).seal(b"x", b"")
        assert load_vault(settings).open(sealed, b"") == b"x"
        path = settings.data_dir / "master-key"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [file.name for file in settings.data_dir.iterdir()] == ["master-key"]

    def test_two_installations_have_different_ones(self, settings: Settings, tmp_path: Path) -> None:
        sealed = load_vault(settings).seal(b"x", b"")
        with pytest.raises(SealBroken):
            load_vault(replace(settings, data_dir=tmp_path / "other")).open(sealed, b"")

    def test_it_must_be_set_for_an_external_database(self, settings: Settings) -> None:
        with pytest.raises(StartError, match="LARGESSE_MASTER_KEY"):
            load_vault(replace(settings, database_url="postgresql://db/largesse"))
        assert not settings.data_dir.exists()

    def test_the_one_that_is_set_is_used(self, settings: Settings) -> None:
        sealed = load_vault(replace(settings, master_keys=(NEW, OLD))).seal(b"x", b"")
        assert Vault((NEW,)).open(sealed, b"") == b"x"

    def test_a_spoilt_file_is_named(self, settings: Settings) -> None:
        load_vault(settings)
        path = settings.data_dir / "master-key"
        path.write_text("garbage")
        with pytest.raises(StartError, match="master-key") as refused:
            load_vault(settings)
        assert "garbage" not in str(refused.value)


@given(codes)
def test_a_code_is_found_by_its_hmac(code: bytes) -> None:
    """As RFC 2104 and `hmac` have it, under a key derived for this alone (RFC 5869)."""
    key = HKDF(SHA256(), length=32, salt=None, info=b"largesse/code-lookup").derive(NEW)
    expected = hmac.digest(key, code, "sha256")[:8]
    assert Vault((NEW,)).lookup(code) == int.from_bytes(expected, "big", signed=True)


def test_quotes_are_signed_by_a_key_of_their_own() -> None:
    old, new = Vault((OLD,)), Vault((NEW, OLD))
    signature = old.sign_quote(b"quote")
    assert len(signature) == SIGNATURE_BYTES
    assert old.has_signed_quote(b"quote", signature)
    assert new.has_signed_quote(b"quote", signature)
    assert not old.has_signed_quote(b"another", signature)
    assert not old.has_signed_quote(b"quote", new.sign_quote(b"quote"))
    changed = signature[:-1] + bytes([signature[-1] ^ 1])
    for forged in (b"", signature[:4], signature[:-1], signature + b"x", changed, bytes(len(signature))):
        assert not old.has_signed_quote(b"quote", forged)
