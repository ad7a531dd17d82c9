#!/usr/bin/env python3
"""Writes seal_vectors.h: blobs made from docs/sealing.md with another implementation.

usage: python3 seal_vectors.py > seal_vectors.h      (needs python3-cryptography)
Nothing here is random, so that the output is always the same.
"""
import hmac
import struct
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

VERSION = b"\x01"


def hkdf(key, label, context=b""):
    """RFC 5869 with SHA-256, no salt, 32 bytes: one block of the expansion."""
    prk = hmac.new(bytes(32), key, sha256).digest()
    info = b"compute-connector v1 " + label + context
    return hmac.new(prk, info + b"\x01", sha256).digest()


def items(*parts):
    return b"".join(struct.pack(">I", len(p)) + p for p in parts)


def u32(n):
    return struct.pack(">I", n)


def show(name, value):
    print(f'static const char {name}[] =')
    text = value.hex()
    rows = [text[i : i + 80] for i in range(0, len(text), 80)] or [""]
    print("\n".join(f'\t"{row}"' for row in rows) + ";")


def raw(key):
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


master_id = 0x01020304
master = bytes(range(32))
data_key = bytes(range(100, 132))
data_key_id = bytes.fromhex("0193abcdef01") + bytes(range(10))
account = bytes.fromhex("0193abcdef00") + bytes(range(50, 60))
nonce = bytes(range(200, 212))

print("/* Made by seal_vectors.py; never edited by hand. */")
print("#pragma once")
print("/* clang-format off */")
show("v_master", master)
show("v_data_key", data_key)
show("v_data_key_id", data_key_id)
show("v_account", account)

aad = items(b"data-key", VERSION, account, data_key_id, u32(master_id))
box = AESGCM(hkdf(master, b"wrap")).encrypt(nonce, data_key, aad)
show("v_wrapped", VERSION + u32(master_id) + nonce + box)

values = [
    ("v_value_usual", b"vercel", b"main", 1, b'{"token":"abc"}'),
    ("v_value_empty", b"e2b", b"a", 7, b""),
    ("v_value_large", b"tunnel", b"k" * 64, 0xFFFFFFFF, b"0123456789abcdef" * 8),
]
for label, provider, name, version, value in values:
    aad = items(b"provider-key", VERSION, account, provider, name, u32(version), data_key_id)
    box = AESGCM(hkdf(data_key, b"seal")).encrypt(nonce, value, aad)
    show(label, VERSION + data_key_id[:4] + nonce + box)

for purpose in (b"idempotency", b"fingerprint", b"address"):
    key = hkdf(data_key, b"hmac ", purpose)
    show("v_hmac_" + purpose.decode(), hmac.new(key, b"some text", sha256).digest())

token = b"cc_live_0123456789ABCDEFGHIJKLMNOPQRST2S6kUD"
token_key = X25519PrivateKey.from_private_bytes(hkdf(token, b"result private"))
token_public = raw(token_key.public_key())
ephemeral = X25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
ephemeral_public = raw(ephemeral.public_key())
shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(token_public))
job, token_id = bytes(range(16)), bytes(range(16, 32))
key = hkdf(shared, b"result ", ephemeral_public + token_public)
box = AESGCM(key).encrypt(nonce, b"exit 0\n", items(b"result", VERSION, job, token_id))
show("v_result_public", token_public)
show("v_result_job", job)
show("v_result_token_id", token_id)
show("v_result", VERSION + ephemeral_public + nonce + box)

# What a forger would make who knows only public halves: a point of small order gives a secret of
# zeros whatever the other key is. It must not open.
small = bytes(32)
key = hkdf(bytes(32), b"result ", small + token_public)
box = AESGCM(key).encrypt(nonce, b"forged\n", items(b"result", VERSION, job, token_id))
show("v_result_forged", VERSION + small + nonce + box)
print("/* clang-format on */")
