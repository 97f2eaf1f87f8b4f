"""Replicas: which partitions this broker has, in-sync replicas, and following the leaders of others."""
