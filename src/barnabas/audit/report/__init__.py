"""Reports of the audit: the ledger kept up to date, shown as a table, as JSON, as a page and as metrics."""
