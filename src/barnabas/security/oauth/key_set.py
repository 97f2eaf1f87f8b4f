"""A JSON web key set: public keys by key id, each with the signature algorithms that it allows.

In: the text of a JWKS. Out: keys. A key that cannot be used is left out, with the reason; a set without a
usable key is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

KEY_SET_BYTES_MAX = 1024 * 1024
KEYS_MAX = 1000
RSA_BITS_MIN = 2048
RSA_BITS_MAX = 8192  # a signature of a larger key would take milliseconds of the event loop

_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES = {"P-256": ("ES256",), "P-384": ("ES384",), "P-521": ("ES512",), "secp256k1": ("ES256K",)}
_OCTET = ("HS256", "HS384", "HS512")


@dataclass(frozen=True, slots=True)
class VerificationKey:
    key: object = field(repr=False)  # of `cryptography`, or bytes of a symmetric key
    algorithms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeySet:
    by_id: Mapping[str, VerificationKey]
    unnamed: tuple[VerificationKey, ...] = ()  # keys without a kid
    left_out: tuple[str, ...] = ()  # reasons why keys are not used

    def find(self, key_id: str | None, algorithm: str) -> VerificationKey | None:
        """The key that a token names. A token without a kid is checked with the only key that fits."""
        if key_id is not None:
            return self.by_id.get(key_id)
        fitting = [key for key in (*self.by_id.values(), *self.unnamed) if algorithm in key.algorithms]
        return fitting[0] if len(fitting) == 1 else None


NO_KEYS = KeySet({})


def parse_key_set(text: bytes) -> KeySet:
    """ValueError if the text is not a key set, or if none of its keys can be used."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON ({type(error).__name__})") from None
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError('it is not a key set: expected a JSON object with a list "keys"')
    by_id: dict[str, VerificationKey] = {}
    unnamed: list[VerificationKey] = []
    left_out: list[str] = []
    for number, entry in enumerate(entries[:KEYS_MAX], 1):
        try:
            key = _parse_key(entry)
        except ValueError as error:
            left_out.append(f"key {number}: {error}")
            continue
        key_id = entry.get("kid")
        if isinstance(key_id, str):
            by_id[key_id] = key
        else:
            unnamed.append(key)
    if not by_id and not unnamed:
        raise ValueError("it has no usable key" + "".join(f"; {reason}" for reason in left_out[:3]))
    return KeySet(by_id, tuple(unnamed), tuple(left_out))


def _parse_key(entry: object) -> VerificationKey:
    import jwt

    if not isinstance(entry, dict):
        raise ValueError("not a JSON object")
    if entry.get("use", "sig") != "sig":
        raise ValueError("its use is not sig")
    algorithms = _algorithms(entry)
    named = entry.get("alg")
    if named is not None:
        if named not in algorithms:
            raise ValueError("its alg does not belong to its kty")
        algorithms = (named,)
    try:
        key = jwt.PyJWK(entry, algorithms[0]).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f"it cannot be read ({type(error).__name__})") from None
    public = key.public_key() if hasattr(key, "public_key") else key
    if entry["kty"] == "RSA" and not RSA_BITS_MIN <= public.key_size <= RSA_BITS_MAX:
        raise ValueError(f"{public.key_size} bits of RSA: expected {RSA_BITS_MIN} to {RSA_BITS_MAX}")
    return VerificationKey(public, algorithms)


def _algorithms(entry: Mapping[str, object]) -> tuple[str, ...]:
    match entry.get("kty"):
        case "RSA":
            return _RSA
        case "EC":
            algorithms = _CURVES.get(str(entry.get("crv")))
            if algorithms is None:
                raise ValueError("its curve is not supported")
            return algorithms
        case "OKP":
            return ("EdDSA",)
        case "oct":
            return _OCTET
        case _:
            raise ValueError("its kty is not supported: expected RSA, EC, OKP or oct")
