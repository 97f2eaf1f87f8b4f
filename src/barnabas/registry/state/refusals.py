"""Refusals of the registry: each code of the API with its text.

In: names and values of a request that is refused. Out: an ApiError to raise.
Does not know: why it is refused; the deciding modules do.
"""

from __future__ import annotations

from barnabas.services.errors import ApiError

SCHEMA_SHOWN_MAX = 500


def malformed(text: str) -> ApiError:
    return ApiError(400, 400, text)


def subject_not_found(subject: str) -> ApiError:
    return ApiError(404, 40401, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> ApiError:
    return ApiError(404, 40402, f"Version {version} not found.")


def schema_not_found(what: object = None) -> ApiError:
    return ApiError(404, 40403, "Schema not found" if what is None else f"Schema {what} not found")


def subject_soft_deleted(subject: str) -> ApiError:
    text = f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"
    return ApiError(404, 40404, text)


def subject_not_soft_deleted(subject: str) -> ApiError:
    return ApiError(404, 40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> ApiError:
    return ApiError(
        404,
        40406,
        f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> ApiError:
    return ApiError(
        404,
        40407,
        f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted",
    )


def config_not_found(subject: str) -> ApiError:
    text = f"Subject '{subject}' does not have subject-level compatibility configured"
    return ApiError(404, 40408, text)


def mode_not_found(subject: str) -> ApiError:
    return ApiError(404, 40409, f"Subject '{subject}' does not have subject-level mode configured")


def association_not_found(what: str) -> ApiError:
    return ApiError(404, 40410, f"Association not found: {what}")


def incompatible(subject: str, messages: list[str]) -> ApiError:
    text = "Schema being registered is incompatible with an earlier schema for subject "
    return ApiError(409, 40901, f'{text}"{subject}", details: [{", ".join(messages)}]')


def association_conflict(code: int, text: str) -> ApiError:
    """40902: too many; 40903: the resource has one; 40904: the subject has one; 40905: the subject has a
    STRONG one; 40907: the subject has no version; 40908: it is frozen."""
    return ApiError(409, code, text)


def invalid_schema(why: str) -> ApiError:
    return ApiError(422, 42201, f"Invalid schema: {why}")


def invalid_version(version: str) -> ApiError:
    text = 'is not a valid version id. Allowed values are between [1, 2^31-1], -1 and the string "latest"'
    return ApiError(422, 42202, f"The specified version '{version[:SCHEMA_SHOWN_MAX]}' {text}")


def invalid_level(level: object) -> ApiError:
    allowed = "NONE, BACKWARD, FORWARD, FULL, BACKWARD_TRANSITIVE, FORWARD_TRANSITIVE, and FULL_TRANSITIVE"
    return ApiError(
        422, 42203, f"Invalid compatibility level {str(level)[:100]!r}. Valid values are {allowed}"
    )


def invalid_mode(mode: object) -> ApiError:
    text = (
        "Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, and FORWARD (for :.__GLOBAL: only)"
    )
    return ApiError(422, 42204, f"Invalid mode {str(mode)[:100]!r}. {text}")


def not_permitted(text: str) -> ApiError:
    return ApiError(422, 42205, text)


def reference_exists(subject: str, version: int, referring: str) -> ApiError:
    text = f"One or more references exist to the schema of subject '{subject}' version {version}: {referring}"
    return ApiError(422, 42206, text)


def invalid_subject(subject: str, why: str) -> ApiError:
    return ApiError(422, 42208, f"The specified subject {subject[:SCHEMA_SHOWN_MAX]!r} is not valid: {why}")


def invalid_rule_set(why: str) -> ApiError:
    return ApiError(422, 42210, f"Invalid rule set: {why}")


def context_not_empty(context: str) -> ApiError:
    return ApiError(
        422, 42211, f"The context '{context}' still holds subjects. Delete them permanently first"
    )


def invalid_association(why: str) -> ApiError:
    return ApiError(422, 42212, f"Invalid association: {why}")


def store_failed(why: str) -> ApiError:
    return ApiError(500, 50001, f"Error in the backend data store: {why}")
