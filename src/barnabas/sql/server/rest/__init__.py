"""The API over HTTP: requests, streams of rows, errors."""
