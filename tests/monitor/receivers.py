"""Receivers of metrics for tests: servers that speak Graphite's, StatsD's and OpenTelemetry's protocols."""

from __future__ import annotations

import gzip
import pickle
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


class TcpReceiver:
    """Keeps what arrives on all connections, in order."""

    def __init__(self, port: int = 0) -> None:
        self.data = bytearray()
        receiver = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                while chunk := self.request.recv(65536):
                    receiver.data += chunk

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def lines(self) -> list[str]:
        return self.data.decode().split("\n")[:-1]

    @property
    def pickles(self) -> list[tuple[str, tuple[int, float]]]:
        found: list[tuple[str, tuple[int, float]]] = []
        data, at = bytes(self.data), 0
        while at + 4 <= len(data):
            (size,) = struct.unpack_from("!L", data, at)
            if at + 4 + size > len(data):
                break
            found += pickle.loads(data[at + 4 : at + 4 + size])
            at += 4 + size
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class UdpReceiver:
    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.port = int(self._socket.getsockname()[1])
        self.datagrams: list[bytes] = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            datagram = self._socket.recv(65536)
            if not datagram:
                self._socket.close()
                return
            self.datagrams.append(datagram)

    @property
    def lines(self) -> list[str]:
        return [line for datagram in list(self.datagrams) for line in datagram.decode().split("\n")]

    def close(self) -> None:
        self._socket.sendto(b"", ("127.0.0.1", self.port))


class OtlpReceiver:
    """OTLP over HTTP, or over gRPC. `answers` is the status of HTTP."""

    def __init__(self, *, over_grpc: bool = False) -> None:
        self.requests: list[Any] = []
        self.spans: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.answers = 200
        if over_grpc:
            self._grpc = grpc.server(ThreadPoolExecutor(2))
            metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(self, self._grpc)
            trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Traces(self), self._grpc)
            self.port = int(self._grpc.add_insecure_port("127.0.0.1:0"))
            self._grpc.start()
            self._http = None
            return
        self._grpc = None
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
                if receiver.answers == 200:
                    receiver.take(self.path, body)
                self.send_response(receiver.answers)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.port = int(self._http.server_address[1])
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/metrics":
            self.requests.append(metrics_service_pb2.ExportMetricsServiceRequest.FromString(body))
        elif path == "/v1/traces":
            self.spans_of(trace_service_pb2.ExportTraceServiceRequest.FromString(body))

    def spans_of(self, request: Any) -> None:
        self.spans += [s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans]

    def Export(self, request: Any, context: Any) -> Any:
        self.requests.append(request)
        self.headers.append(dict(context.invocation_metadata()))
        return metrics_service_pb2.ExportMetricsServiceResponse()

    @property
    def metrics(self) -> dict[str, Any]:
        """The newest message of each metric."""
        return {
            metric.name: metric
            for request in list(self.requests)
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    @property
    def resource(self) -> dict[str, str]:
        attributes = self.requests[-1].resource_metrics[0].resource.attributes
        return {each.key: each.value.string_value for each in attributes}

    def close(self) -> None:
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
        if self._grpc is not None:
            self._grpc.stop(None)


class Traces:
    def __init__(self, receiver: OtlpReceiver) -> None:
        self._receiver = receiver

    def Export(self, request: Any, context: Any) -> Any:
        self._receiver.spans_of(request)
        return trace_service_pb2.ExportTraceServiceResponse()


@contextmanager
def opened(*receivers: Any) -> Iterator[None]:
    try:
        yield
    finally:
        for each in receivers:
            each.close()
