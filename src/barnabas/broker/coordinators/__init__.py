"""Coordinators of groups and of transactions: shards hosted on partitions of internal topics."""
