"""The batch and the speed layer of views: both compute parts, which the store merges."""
