"""Views: one SQL, run by a batch layer up to a horizon and by a speed layer after it; see `layers.Views`."""
