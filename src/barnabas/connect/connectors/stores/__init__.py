"""What connectors of stores share: values as JSON, and a count of retries."""
