"""Membership of classic groups: a pure state machine, and the asyncio task that drives it."""
