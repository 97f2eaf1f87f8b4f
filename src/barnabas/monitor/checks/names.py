"""The names of all checks that a rule can ask for."""

CHECK_NAMES = (
    "unreachable",
    "offline_partitions",
    "under_replicated",
    "under_min_isr",
    "no_controller",
    "brokers_gone",
    "quorum_lag",
    "offline_log_dirs",
    "disk_free_percent",
    "disk_full_hours",
    "group_status",
    "group_lag",
    "group_lag_seconds",
    "retention_hours",
    "metric",
    "metric_increase",
    "audit",
    "connector_failed",
    "certificate_days",
    "check_blind",
)
