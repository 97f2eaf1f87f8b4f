import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.records.crc32c import crc32c, crc32c_by_table


@pytest.mark.parametrize("checksum", [crc32c, crc32c_by_table])
def test_the_check_value_of_the_castagnoli_polynomial_comes_out(checksum) -> None:
    assert checksum(b"123456789") == 0xE3069283


@given(st.binary(max_size=300))
def test_hardware_and_table_agree(data: bytes) -> None:
    assert crc32c(memoryview(data)) == crc32c_by_table(memoryview(data))


def test_the_compiled_checksum_is_in_use_where_its_package_is_installed() -> None:
    import crc32c as package

    assert package.crc32c(b"abc") == crc32c(b"abc")
    assert crc32c is not crc32c_by_table
