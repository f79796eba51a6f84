import base64
import contextlib
import hmac
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from largesse.base.errors import OperatorError
from largesse.base.settings import Settings, load_settings
from largesse.encryption.vault import SIGNATURE_BYTES, Compartment, DecryptionFailed, Vault, load_vault

OLD, NEW, OTHER = bytes(range(32)), bytes(range(32, 64)), bytes(range(64, 96))
codes = st.binary(min_size=10, max_size=10)


@given(st.binary(max_size=100), st.binary(max_size=50))
def test_what_was_sealed_opens_in_its_context(secret: bytes, context: bytes) -> None:
    vault = Vault((NEW,))
    sealed = vault.codes.seal(secret, context)
    assert vault.codes.open(sealed, context) == secret
    with pytest.raises(DecryptionFailed):
        vault.codes.open(sealed, context + b"x")


def test_nothing_of_the_secret_shows_and_no_two_seals_are_alike() -> None:
    vault = Vault((NEW,))
    seals = {vault.codes.seal(b"a secret of some length", b"") for _ in range(100)}
    assert len(seals) == 100
    assert not any(b"secret" in sealed for sealed in seals)


@given(st.binary(min_size=1, max_size=40), st.data())
def test_any_changed_bit_is_noticed(secret: bytes, data: st.DataObject) -> None:
    vault = Vault((NEW, OLD))
    sealed = bytearray(vault.codes.seal(secret, b"line/1"))
    at = data.draw(st.integers(0, len(sealed) * 8 - 1))
    sealed[at // 8] ^= 1 << at % 8
    with pytest.raises(DecryptionFailed):
        vault.codes.open(bytes(sealed), b"line/1")


@given(st.binary(max_size=60))
def test_any_other_bytes_are_refused(sealed: bytes) -> None:
    with pytest.raises(DecryptionFailed):
        Vault((NEW,)).codes.open(sealed, b"")


@given(st.integers(0, 31))
def test_sealed_bytes_cut_short_are_refused(length: int) -> None:
    vault = Vault((NEW,))
    with pytest.raises(DecryptionFailed):
        vault.codes.open(vault.codes.seal(b"", b"")[:length], b"")


@given(codes)
def test_older_keys_open_and_the_newest_seals(code: bytes) -> None:
    before, after = Vault((OLD,)), Vault((NEW, OLD))
    assert after.codes.open(before.codes.seal(code, b"c"), b"c") == code
    assert after.code_of_token(before.token(code)) == (code, None)
    assert before.codes.lookup(code) in after.codes.lookups(code)
    assert after.codes.lookup(code) == Vault((NEW,)).codes.lookup(code)
    with pytest.raises(DecryptionFailed):
        before.codes.open(after.codes.seal(code, b"c"), b"c")
    with pytest.raises(DecryptionFailed):
        before.code_of_token(after.token(code))


@given(codes)
def test_a_code_has_one_token_and_it_does_not_show_the_code(code: bytes) -> None:
    vault = Vault((NEW,))
    token = vault.token(code)
    assert vault.token(code) == token
    assert len(token) == 40
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert vault.code_of_token(token) == (code, None)
    assert code not in base64.urlsafe_b64decode(token)


@given(codes, st.integers(0, 2**31 - 1))
def test_a_token_may_say_whose_the_code_is_and_not_show_it(code: bytes, customer_id: int) -> None:
    vault = Vault((NEW,))
    token = vault.token(code, customer_id)
    assert len(token) == 48
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert vault.code_of_token(token) == (code, customer_id)
    assert token != vault.token(code, customer_id + 1)


@given(codes, st.data())
def test_a_token_with_another_character_is_refused(code: bytes, data: st.DataObject) -> None:
    vault = Vault((NEW, OLD))
    token = vault.token(code)
    at = data.draw(st.integers(0, 39))
    character = data.draw(st.characters().filter(lambda c: c != token[at]))
    with pytest.raises(DecryptionFailed):
        vault.code_of_token(token[:at] + character + token[at + 1 :])


@given(st.text(max_size=60) | st.text(alphabet="ABCabc012-_=+/", min_size=38, max_size=42))
def test_any_other_text_is_no_token(text: str) -> None:
    with pytest.raises(DecryptionFailed):
        Vault((NEW,)).code_of_token(text)


def test_a_token_of_another_installation_is_refused() -> None:
    with pytest.raises(DecryptionFailed):
        Vault((NEW,)).code_of_token(Vault((OTHER,)).token(bytes(10)))


@given(codes)
def test_lookups_fit_a_bigint(code: bytes) -> None:
    assert all(-(2**63) <= number < 2**63 for number in Vault((NEW, OLD)).codes.lookups(code))


def parts(vault: Vault) -> dict[str, Compartment]:
    return {name: part for name, part in vars(vault).items() if isinstance(part, Compartment)}


@pytest.mark.parametrize("purpose", parts(Vault((NEW,))))
class TestCompartments:
    """Each purpose has keys of its own; what 0.1.0 sealed and looked up under those of the codes is still found."""

    def test_what_is_sealed_for_a_purpose_opens_for_no_other(self, purpose: str) -> None:
        vault = Vault((NEW, OLD))
        sealed = parts(vault)[purpose].seal(b"secret", b"context")
        assert vault.knows(sealed)
        assert parts(vault)[purpose].is_newest(sealed)
        opened = set()
        for name, part in parts(vault).items():
            with contextlib.suppress(DecryptionFailed):
                part.open(sealed, b"context")
                opened.add(name)
        # The codes' own keys were everybody's.
        assert opened == (set(parts(vault)) if purpose == "codes" else {purpose})

    def test_the_same_message_has_another_number_for_each_purpose(self, purpose: str) -> None:
        vault = Vault((NEW,))
        others = {part.lookup(b"m") for name, part in parts(vault).items() if name != purpose}
        assert parts(vault)[purpose].lookup(b"m") not in others

    def test_what_0_1_0_sealed_and_looked_up_is_found(self, purpose: str) -> None:
        sealed, number, name = sealed_by_0_1_0(OLD, b"secret", b"context"), *looked_up_by_0_1_0(OLD, b"m")
        part = parts(Vault((NEW, OLD)))[purpose]
        assert part.open(sealed, b"context") == b"secret"
        assert number in part.lookups(b"m")
        assert part.is_name(name, b"m")
        assert not part.is_newest(sealed)

    def test_a_name_is_known_under_every_key_and_no_other_name_is(self, purpose: str) -> None:
        before, after = parts(Vault((OLD,)))[purpose], parts(Vault((NEW, OLD)))[purpose]
        assert after.is_name(before.name(b"m"), b"m")
        assert after.is_name(after.name(b"m"), b"m")
        for wrong in ("", "é", "\ud800", before.name(b"n"), before.name(b"m").upper(), before.name(b"m") + "0"):
            assert not after.is_name(wrong, b"m")
        assert not before.is_name(after.name(b"m"), b"m")


def sealed_by_0_1_0(master_key: bytes, secret: bytes, context: bytes) -> bytes:
    """As that release sealed everything (RFC 5869, AES-256-GCM)."""
    nonce = bytes(12)
    sealed = AESGCM(derived(master_key, "sealing", 32)).encrypt(nonce, secret, context)
    return derived(master_key, "fingerprint", 4) + nonce + sealed


def looked_up_by_0_1_0(master_key: bytes, message: bytes) -> tuple[int, str]:
    """As that release looked everything up, a code or any other message: its number, and its name in hexadecimal."""
    digest = hmac.digest(derived(master_key, "code-lookup", 32), message, "sha256")[:8]
    return int.from_bytes(digest, "big", signed=True), digest.hex()


def derived(master_key: bytes, purpose: str, length: int) -> bytes:
    return HKDF(SHA256(), length=length, salt=None, info=f"largesse/{purpose}".encode()).derive(master_key)


def test_a_vault_needs_a_key() -> None:
    with pytest.raises(ValueError, match="master key"):
        Vault(())


class TestLoading:
    """Where the master key comes from."""

    @pytest.fixture
    def settings(self, tmp_path: Path) -> Settings:
        return replace(load_settings({}), data_dir=tmp_path / "data")

    def test_one_is_generated_once_for_an_embedded_database(self, settings: Settings) -> None:
        sealed = load_vault(settings).codes.seal(b"x", b"")
        assert load_vault(settings).codes.open(sealed, b"") == b"x"
        path = settings.data_dir / "master-key"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [file.name for file in settings.data_dir.iterdir()] == ["master-key"]

    def test_two_installations_have_different_ones(self, settings: Settings, tmp_path: Path) -> None:
        sealed = load_vault(settings).codes.seal(b"x", b"")
        with pytest.raises(DecryptionFailed):
            load_vault(replace(settings, data_dir=tmp_path / "other")).codes.open(sealed, b"")

    def test_it_must_be_set_for_an_external_database(self, settings: Settings) -> None:
        with pytest.raises(OperatorError, match="LARGESSE_MASTER_KEY"):
            load_vault(replace(settings, database_url="postgresql://db/largesse"))
        assert not settings.data_dir.exists()

    def test_the_one_that_is_set_is_used(self, settings: Settings) -> None:
        sealed = load_vault(replace(settings, master_keys=(NEW, OLD))).codes.seal(b"x", b"")
        assert Vault((NEW,)).codes.open(sealed, b"") == b"x"

    def test_a_file_of_several_keys_begins_with_the_newest(self, settings: Settings) -> None:
        load_vault(settings)
        path = settings.data_dir / "master-key"
        old = path.read_text()
        path.write_text(f"{NEW.hex()}\n\n{old}")
        vault = load_vault(settings)
        assert vault.key_ids == (*Vault((NEW,)).key_ids, *Vault((base64.b64decode(old),)).key_ids)
        path.write_text("\n")
        with pytest.raises(OperatorError, match="contains no master key"):
            load_vault(settings)

    def test_a_spoilt_file_is_named(self, settings: Settings) -> None:
        load_vault(settings)
        path = settings.data_dir / "master-key"
        path.write_text("garbage")
        with pytest.raises(OperatorError, match="master-key") as refused:
            load_vault(settings)
        assert "garbage" not in str(refused.value)


def test_what_is_left_of_a_key_opens_its_links_and_nothing_else() -> None:
    old, both, new = Vault((OLD,)), Vault((NEW, OLD)), Vault((NEW,))
    token, code, (name,) = old.token(bytes(10)), old.codes.seal(b"code", b""), old.key_ids
    rest = both.rest_of(name)
    new.keep_rest(name, rest)
    assert new.code_of_token(token) == (bytes(10), None)
    assert new.token(bytes(10)) == both.token(bytes(10)) != token
    with pytest.raises(DecryptionFailed):
        new.codes.open(code, b"")
    with pytest.raises(DecryptionFailed):
        Vault((OTHER,)).keep_rest(name, rest)
    with pytest.raises(DecryptionFailed):
        new.keep_rest(new.key_ids[0], rest)
    third = Vault((OTHER, NEW))
    Vault((OTHER,)).keep_rest(name, third.reseal_rest(name, rest))


def test_a_key_that_comes_twice_counts_once() -> None:
    assert Vault((NEW, OLD, NEW)).key_ids == Vault((NEW, OLD)).key_ids


@given(codes)
def test_a_code_is_found_by_its_hmac(code: bytes) -> None:
    """As RFC 2104 and `hmac` have it, under a key derived for this alone (RFC 5869)."""
    assert Vault((NEW,)).codes.lookup(code) == looked_up_by_0_1_0(NEW, code)[0]


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
