import subprocess
import sys

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.compression import Compression, compress, decompress

COMPRESSED = [codec for codec in Compression if codec]


@given(st.binary(max_size=70_000), st.sampled_from(list(Compression)))
def test_data_comes_back(data: bytes, codec: Compression) -> None:
    assert decompress(codec, compress(codec, data)) == data
    assert decompress(codec, memoryview(compress(codec, memoryview(data))), max(len(data), 1)) == data


@pytest.mark.parametrize("codec", COMPRESSED)
def test_exactly_the_limit_may_come_out(codec: Compression) -> None:
    data = bytes(100_000)
    packed = compress(codec, data)
    assert decompress(codec, packed, 100_000) == data
    with pytest.raises(KafkaError, match="more than 99999 bytes") as refusal:
        decompress(codec, packed, 99_999)
    assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (Compression.GZIP, (-1, 1, 9)),
        (Compression.LZ4, (1, 9, 17)),
        (Compression.ZSTD, (-7, 1, 22)),
    ],
)
def test_levels_are_understood(codec: Compression, levels: tuple[int, ...]) -> None:
    data = b"a level of compression " * 1000
    assert all(decompress(codec, compress(codec, data, level)) == data for level in levels)


def test_the_default_level_of_lz4_is_the_fast_one() -> None:
    data = b"".join(bytes([number % 251, number % 7]) * 5 for number in range(20_000))
    assert compress(Compression.LZ4, data) == compress(Compression.LZ4, data, 9)
    assert len(compress(Compression.LZ4, data, 8)) < len(compress(Compression.LZ4, data, 9))


def test_snappy_is_written_as_java_frames_it() -> None:
    packed = compress(Compression.SNAPPY, b"x" * 70_000)
    assert packed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    first = int.from_bytes(packed[16:20], "big")
    assert len(cramjam.snappy.decompress_raw(packed[20 : 20 + first])) == 32 * 1024


def test_snappy_without_a_frame_is_read() -> None:
    data = b"librdkafka writes raw blocks " * 100
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_frames_behind_each_other_are_read_as_one(codec: Compression) -> None:
    assert decompress(codec, compress(codec, b"first ") + compress(codec, b"second")) == b"first second"


def test_lz4_blocks_are_independent_because_java_reads_no_others() -> None:
    packed = compress(Compression.LZ4, bytes(200_000))
    assert packed[:4] == b"\x04\x22\x4d\x18"
    assert packed[4] & 0x20  # block independence


@pytest.mark.parametrize("codec", COMPRESSED)
def test_broken_data_is_corrupt(codec: Compression) -> None:
    packed = compress(codec, b"something to break " * 100)
    for broken in (b"", b"\x00" * 40, packed[:-5], packed[: len(packed) // 2], packed + b"rest"):
        with pytest.raises(KafkaError) as refusal:
            decompress(codec, broken)
        assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE


@given(st.sampled_from(COMPRESSED), st.binary(max_size=300), st.integers(0, 60), st.integers(0, 255))
def test_no_bytes_make_it_fail_otherwise(codec: Compression, data: bytes, at: int, value: int) -> None:
    packed = bytearray(compress(codec, data))
    packed[at % len(packed)] = value
    for hostile in (packed, data):
        try:
            assert len(decompress(codec, hostile, 1000)) <= 1000
        except KafkaError as error:
            assert error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


def test_snappy_cannot_claim_more_than_its_bytes_can_hold() -> None:
    with pytest.raises(KafkaError, match=r"claims 4294967295|more than"):
        decompress(Compression.SNAPPY, b"\xff\xff\xff\xff\x0f", 2**33)


def test_an_unknown_codec_is_named() -> None:
    for call in (compress, decompress):
        with pytest.raises(KafkaError, match="number 6") as refusal:
            call(6, b"data")
        assert refusal.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


BOMB = """
import resource, sys
from barnabas.protocol import KafkaError
from barnabas.records.compression import compress, decompress
codec = int(sys.argv[1])
compress(codec, b"warm")
packed = sys.stdin.buffer.read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(codec, packed, 1 << 20)
except KafkaError as error:
    print(error.code.name, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_costs_no_more_memory_than_the_limit(codec: Compression) -> None:
    packed = compress(codec, bytes(256 * 1024 * 1024))
    run = subprocess.run(
        [sys.executable, "-c", BOMB, str(int(codec))],
        input=packed,
        capture_output=True,
        check=True,
        timeout=60,
    )
    code, grown_kb = run.stdout.decode().split()
    assert code == "MESSAGE_TOO_LARGE"
    assert int(grown_kb) < 32 * 1024
