"""Runs raft and the controller on a node: the metadata log on disk, requests to other voters, timers."""
