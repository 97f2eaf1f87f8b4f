"""The refined zone: business tables, updated by increments where their SQL allows it."""
