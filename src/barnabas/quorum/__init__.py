"""Drives raft and the controller: the metadata log on disk, requests to peers, timers."""
