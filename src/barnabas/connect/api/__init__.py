"""The REST API of Connect: endpoints, bodies, responses, the service of a worker."""
