"""The client without input and output: frames, versions, routing, retries, producing, transactions.

Every wait goes through the port in `network.py`. A face implements that port: `client/asyncio_network.py` on
an event loop, `client/blocking.py` with sockets that block. Nothing here imports asyncio, socket, time or
random.
"""
