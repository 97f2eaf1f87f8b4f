"""The REST proxy put together: a service of the frame."""
