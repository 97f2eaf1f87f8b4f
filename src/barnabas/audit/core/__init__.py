"""The audit without input and output: buckets, count messages, sums of them, verdicts, reports."""
