"""Sources of rows: topics, tables of databases, files. Each source is read slice by slice."""
