"""Values that stand elsewhere: the environment, a properties file, a folder of files."""

import pytest

from barnabas.settings import SettingsError
from barnabas.settings.providers import PACKAGE, resolve

FILES = {"/run/secrets.properties": "password=hunter2\n", "/run/secrets/key": "k3y"}
DECLARED = {
    "config.providers": "env, file,dir",
    "config.providers.env.class": PACKAGE + "EnvVarConfigProvider",
    "config.providers.file.class": PACKAGE + "FileConfigProvider",
    "config.providers.dir.class": PACKAGE + "DirectoryConfigProvider",
}


def read_text(path: str) -> str:
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory", path)
    return FILES[path]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${env:RACK}", "r1"),
        ("rack-${env:RACK}-${env:RACK}", "rack-r1-r1"),
        ("${file:/run/secrets.properties:password}", "hunter2"),
        ("${dir:/run/secrets:key}", "k3y"),
        ("${env:MISSING}", "${env:MISSING}"),
        ("${vault:a:b}", "${vault:a:b}"),
        ("$env", "$env"),
    ],
)
def test_references_are_replaced(text: str, value: str) -> None:
    assert resolve({**DECLARED, "broker.rack": text}, {"RACK": "r1"}, read_text)["broker.rack"] == value


def test_nothing_is_replaced_without_a_declared_provider() -> None:
    assert resolve({"broker.rack": "${env:RACK}"}, {"RACK": "r1"}, read_text) == {
        "broker.rack": "${env:RACK}"
    }


def test_a_missing_file_is_named() -> None:
    with pytest.raises(SettingsError, match="file:/nowhere"):
        resolve({**DECLARED, "broker.rack": "${file:/nowhere:x}"}, {}, read_text)


def test_a_key_cannot_leave_its_folder() -> None:
    with pytest.raises(SettingsError):
        resolve({**DECLARED, "broker.rack": "${dir:/run/secrets:../secrets.properties}"}, {}, read_text)


def test_an_unknown_provider_class_is_refused_with_those_known() -> None:
    with pytest.raises(SettingsError, match="FileConfigProvider"):
        resolve({"config.providers": "v", "config.providers.v.class": "com.acme.Vault"}, {}, read_text)
