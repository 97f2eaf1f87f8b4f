"""pipeline key, pipeline decrypt: keys of encrypted fields, and the values behind encrypted texts.

In: a table of the pipeline's file, texts as arguments or on standard input. Out: the texts with everything
decrypted that the key of the table opens; other text stays, so that any output can be piped through.
"""

import argparse
import sys

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.pipelines.pipeline_file import load
from barnabas.engine.field_cipher import FieldCipher, KeyProblem, new_key
from barnabas.engine.secrets import SecretError, reveal


def key(options: argparse.Namespace, out: Output) -> None:
    out.line(new_key())


def decrypt(options: argparse.Namespace, out: Output) -> None:
    pipeline = load(options.file)
    name = options.table.removeprefix("trusted.")
    tables = {table.name: table for table in pipeline.trusted if table.key}
    if name not in tables:
        known = ", ".join(tables) or "none"
        raise ToolError(f"no trusted table {name} has a key: tables with encrypted fields are {known}")
    try:
        cipher = FieldCipher(reveal(tables[name].key))
        for text in options.text or sys.stdin:
            out.line(cipher.decrypt_all(text.rstrip("\n")))
    except (KeyProblem, SecretError) as error:
        raise ToolError(str(error)) from None
