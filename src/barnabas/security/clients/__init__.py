"""How clients secure their connections, from properties in the names of Kafka's clients."""
