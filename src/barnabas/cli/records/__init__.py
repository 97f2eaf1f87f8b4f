"""Tools that write and read records: the console producer and the console consumer."""
