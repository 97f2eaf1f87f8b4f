"""dump-log: print the content of log, index, snapshot and checkpoint files, line for line as Kafka does."""

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from barnabas.cli.files import index_dump, record_decoders
from barnabas.cli.files.data_files import keys_from, size_of
from barnabas.cli.files.index_dump import IndexProblems
from barnabas.cli.files.record_decoders import Decoder
from barnabas.cli.files.segment_dump import BYTES_MAX, SegmentDump, SegmentView
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, required
from barnabas.cli.frame.progress import progress
from barnabas.records.record import Record

EXAMPLES = (
    "--files data/orders-0/00000000000000000000.log --print-data-log",
    "--files data/orders-0/00000000000000000000.index --index-sanity-check",
    "--cluster-metadata-decoder --files data/__cluster_metadata-0/00000000000000000000.log",
)
SNAPSHOT_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
BOOTSTRAP_NAME = "bootstrap.checkpoint"
TEXT_CHECKPOINTS = {
    "leader-epoch-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
}
DECODERS: dict[str, Decoder] = {
    "offsets_decoder": record_decoders.offsets,
    "transaction_log_decoder": record_decoders.transaction_log,
    "cluster_metadata_decoder": record_decoders.cluster_metadata,
    "remote_log_metadata_decoder": record_decoders.remote_log_metadata,
    "share_group_state_decoder": record_decoders.share_state,
}


def add_arguments(parser: ToolParser) -> None:
    parser.add_argument("--files", metavar="FILE,...", help="the files to print (required)")
    parser.add_argument(
        "--config", metavar="FILE", help="the node's server.properties, for the keys of encrypted files"
    )
    parser.add_argument("--print-data-log", action="store_true", help="print keys and values of records, too")
    parser.add_argument("--deep-iteration", action="store_true", help="print a line for each record")
    parser.add_argument(
        "--skip-record-metadata", action="store_true", help="print only keys and values of records"
    )
    parser.add_argument(
        "--max-bytes", type=int, default=BYTES_MAX, metavar="N", help="stop after this many bytes"
    )
    parser.add_argument(
        "--index-sanity-check", action="store_true", help="only check indexes as a broker does"
    )
    parser.add_argument("--verify-index-only", action="store_true", help="only compare indexes with the log")
    parser.add_argument(
        "--cluster-metadata-decoder", action="store_true", help="decode records of __cluster_metadata"
    )
    parser.add_argument("--offsets-decoder", action="store_true", help="decode records of __consumer_offsets")
    parser.add_argument(
        "--transaction-log-decoder", action="store_true", help="decode records of __transaction_state"
    )
    parser.add_argument(
        "--share-group-state-decoder", action="store_true", help="decode records of __share_group_state"
    )
    parser.add_argument("--remote-log-metadata-decoder", action="store_true", help="of __remote_log_metadata")
    parser.add_argument(
        "--key-decoder-class", nargs="?", metavar="CLASS", help="IntegerDecoder, LongDecoder, ..."
    )
    parser.add_argument("--value-decoder-class", nargs="?", metavar="CLASS", help="the same for values")
    parser.add_argument("--max-message-size", type=int, metavar="N", help=argparse.SUPPRESS)


def run(options: argparse.Namespace, out: Output) -> None:
    required(options, "files")
    paths = [Path(name.strip()) for name in options.files.split(",")]
    view = segment_view(options)
    problems: list[str] = []
    for path in paths:
        if not path.is_file():
            reason = "is a folder: name the files in it" if path.is_dir() else "does not exist"
            raise ToolError(f"--files: {path} {reason}")
        out.line(f"Dumping {path}")
        with keys_from(options.config):
            dump_file(path, view, options, out, problems)
    out.flush()
    for problem in problems:
        out.note(problem)


def segment_view(options: argparse.Namespace) -> SegmentView:
    chosen = [decode for name, decode in DECODERS.items() if getattr(options, name)]
    content = bool(
        options.print_data_log or chosen or options.key_decoder_class or options.value_decoder_class
    )
    return SegmentView(
        records=content or options.deep_iteration,
        content=content,
        record_metadata=not options.skip_record_metadata,
        bytes_max=options.max_bytes,
        decode=chosen[0] if chosen else by_class(options.key_decoder_class, options.value_decoder_class),
    )


def by_class(key_class: str | None, value_class: str | None) -> Decoder:
    read_key = record_decoders.reader_of_class(key_class)
    read_value = record_decoders.reader_of_class(value_class)

    def decode(record: Record) -> tuple[str | None, str | None]:
        key = None if record.key is None else read_key(record.key)
        return key, None if record.value is None else read_value(record.value)

    return decode


def dump_file(
    path: Path, view: SegmentView, options: argparse.Namespace, out: Output, problems: list[str]
) -> None:
    findings = IndexProblems()
    checks = {"sanity_only": options.index_sanity_check, "verify_only": options.verify_index_only}
    kinds: dict[str, Callable[[], Iterator[str]]] = {
        ".index": lambda: index_dump.offset_index(path, findings, **checks),
        ".timeindex": lambda: index_dump.time_index(path, findings, **checks),
        ".txnindex": lambda: index_dump.transaction_index(path),
        ".snapshot": lambda: index_dump.producer_snapshot(path),
    }
    if path.suffix in (".log", ".checkpoint"):
        out.line(title_of(path))
        dump = SegmentDump(path, view)
        with progress(path.name, size_of(path), size_bytes=True, beside_output=False) as advance:
            shown = 0
            for line in dump.lines():
                out.line(line)
                advance(dump.position - shown)
                shown = dump.position
        if dump.gaps:
            problems.append(f"Non-consecutive offsets in {path.absolute()}")
            problems += [f"  {one} is followed by {other}" for one, other in dump.gaps]
    elif path.name in TEXT_CHECKPOINTS:
        for line in index_dump.text_checkpoint(path):
            out.line(line)
    elif path.suffix in kinds:
        for line in kinds[path.suffix]():
            out.line(line)
        problems += findings.lines(path)
    else:
        out.note(f"Ignoring unknown file {path}")


def title_of(path: Path) -> str:
    if path.name == BOOTSTRAP_NAME:
        return "KRaft bootstrap snapshot"
    if path.suffix == ".log":
        return f"Log starting offset: {index_dump.base_offset(path)}"
    snapshot = SNAPSHOT_NAME.fullmatch(path.name)
    if snapshot is None:
        raise ToolError(
            f"{path}: a snapshot's name is its end offset and epoch, as in {0:020}-{1:010}.checkpoint"
        )
    return f"Snapshot end offset: {int(snapshot[1])}, epoch: {int(snapshot[2])}"
