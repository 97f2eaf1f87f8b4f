import pytest

from barnabas.metadata.transactions import TransactionFilter
from barnabas.protocol import Message
from barnabas.protocol.log_records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    ProducerIdsRecord,
)

BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()


def ids(number: int) -> Message:
    return ProducerIdsRecord(next_producer_id=number)


def test_records_of_a_transaction_appear_when_it_ends() -> None:
    transactions = TransactionFilter()
    assert list(transactions.pass_on([ids(1), BEGIN, ids(2)])) == [ids(1)]
    assert transactions.is_open
    assert list(transactions.pass_on([ids(3), END, ids(4)])) == [ids(2), ids(3), ids(4)]
    assert not transactions.is_open


def test_records_of_an_aborted_transaction_never_appear() -> None:
    assert list(TransactionFilter().pass_on([BEGIN, ids(1), ABORT, ids(2)])) == [ids(2)]


@pytest.mark.parametrize("history", [[END], [ABORT], [BEGIN, BEGIN]])
def test_transactions_do_not_nest_and_do_not_end_twice(history: list[Message]) -> None:
    with pytest.raises(ValueError, match="transaction"):
        list(TransactionFilter().pass_on(history))
