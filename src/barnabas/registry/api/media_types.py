"""Media types of the registry's API."""

V1_JSON = "application/vnd.schemaregistry.v1+json"
RESPONSE_TYPES = (V1_JSON, "application/vnd.schemaregistry+json", "application/json")
REQUEST_TYPES = (*RESPONSE_TYPES, "application/octet-stream")
