"""Character sets of MySQL and the codecs of Python that read them. Pure."""

from __future__ import annotations

import codecs

CODECS = {
    "utf8": "utf-8", "utf8mb3": "utf-8", "utf8mb4": "utf-8", "latin1": "cp1252", "latin2": "iso8859-2",
    "latin5": "iso8859-9", "latin7": "iso8859-13", "ascii": "ascii", "ucs2": "utf-16-be",
    "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be", "greek": "iso8859-7",
    "hebrew": "iso8859-8", "koi8r": "koi8-r", "koi8u": "koi8-u", "sjis": "shift_jis", "cp932": "cp932",
    "ujis": "euc-jp", "eucjpms": "euc-jp", "euckr": "euc-kr", "gb2312": "gb2312", "gbk": "gbk",
    "gb18030": "gb18030", "big5": "big5", "tis620": "tis-620", "macroman": "mac-roman", "macce": "mac-latin2",
}  # fmt: skip


def encoding_of(charset: str) -> str:
    """The codec of a character set. ValueError if there is none."""
    name = CODECS.get(charset.lower(), charset.lower())
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ValueError(f"no codec reads the character set {charset}: exclude the column") from None
