"""Encryption at rest: a disk that encrypts the data files of a log dir, its keys, and who wraps them."""
