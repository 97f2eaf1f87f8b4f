"""AlterUserScramCredentials: the derived keys, and an error for every user.

Responses to invalid requests are compared with Apache Kafka's in tests/interop.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from barnabas.controller.refusals import refusal
from barnabas.controller.scram import alter_user_scram_credentials
from barnabas.metadata.versions import SCRAM
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.log_records.metadata import FeatureLevelRecord, UserScramCredentialRecord
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest as Request,
)
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse as Response,
)

from .test_elections import context

SHA_256 = 1
# The exchange that RFC 7677 shows: user "user", password "pencil".
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
MESSAGES = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={NONCE}"
PROOF = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
SERVER_SIGNATURE = base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def pencil(name: str = "user") -> Request:
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
    wanted = Request.ScramCredentialUpsertion(
        name=name, mechanism=SHA_256, iterations=4096, salt=SALT, salted_password=salted
    )
    return Request(upsertions=[wanted])


def test_the_keys_are_those_of_the_standards_exchange() -> None:
    [record] = alter_user_scram_credentials(context(), pencil()).records
    assert isinstance(record, UserScramCredentialRecord)
    assert hmac.digest(record.server_key, MESSAGES.encode(), "sha256") == SERVER_SIGNATURE
    client_signature = hmac.digest(record.stored_key, MESSAGES.encode(), "sha256")
    client_key = bytes(a ^ b for a, b in zip(PROOF, client_signature, strict=True))
    assert hashlib.sha256(client_key).digest() == record.stored_key


def test_a_deletion_finds_what_was_made() -> None:
    made = alter_user_scram_credentials(context(), pencil()).records
    gone = Request(deletions=[Request.ScramCredentialDeletion(name="user", mechanism=SHA_256)])
    decision = alter_user_scram_credentials(context(*made), gone)
    assert [result.error_code for result in decision.reply.results] == [ErrorCode.NONE]
    assert len(decision.records) == 1


def test_a_controller_that_is_not_active_refuses_every_user() -> None:
    request = pencil("alice")
    request.deletions = [Request.ScramCredentialDeletion(name="bob", mechanism=SHA_256)]
    refused = refusal(request, KafkaError(ErrorCode.NOT_CONTROLLER, "not here"))
    assert isinstance(refused, Response)
    found = {each.user: each.error_code for each in refused.results}
    assert found == {"alice": ErrorCode.NOT_CONTROLLER, "bob": ErrorCode.NOT_CONTROLLER}


def test_a_metadata_version_without_credentials_refuses_all() -> None:
    level = FeatureLevelRecord(name="metadata.version", feature_level=SCRAM - 1)
    with pytest.raises(KafkaError) as refused:
        alter_user_scram_credentials(context(level), pencil())
    assert refused.value.code == ErrorCode.UNSUPPORTED_VERSION
