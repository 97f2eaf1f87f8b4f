"""A client of a schema registry: one core of coroutines, a blocking and an asyncio face."""
