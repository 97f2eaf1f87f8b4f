"""Models of what must be true: clients report what they send and receive, and a model raises `Wrong`."""
