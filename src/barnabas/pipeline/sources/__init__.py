"""Where rows come from: topics, tables of databases, files. Each is read in portions with a position
behind it."""
