"""One connection's protocol without its socket: where incoming bytes land and how frames are cut from
them.
"""
