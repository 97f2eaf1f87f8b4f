"""Errors of embedded data. Each API gives them its own code."""


class FormatError(Exception):
    """Embedded data cannot be converted; the message is one line fit for a caller."""


class DataMismatch(FormatError):
    """Data that do not fit the format or the schema, or bytes that are no data of it."""

    def within(self, step: str) -> "DataMismatch":
        """The same error, seen from the value that holds this one under `step`."""
        text = str(self)
        path, mark, rest = text.partition(": ")
        if mark and path.startswith("at "):
            return DataMismatch(f"at {step}.{path[3:]}: {rest}")
        return DataMismatch(f"at {step}: {text}")


class SchemaMissing(FormatError):
    """The format needs a schema, and the request names none."""


class SchemaNotFound(FormatError):
    """The registry does not know this id, subject or version."""


class SchemaRefused(FormatError):
    """The text is no schema, or the registry does not accept it for the subject."""


class RegistryFailure(FormatError):
    """The registry cannot be asked, or it failed."""
