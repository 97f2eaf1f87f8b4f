"""How `make test` runs: workers side by side, failed tests once more alone, durations kept."""
