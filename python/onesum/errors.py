"""What onesum raises: one class for each code, each also the builtin that fits.

The class says what the caller should do next; the message names the thing, what was found and what was expected.

>>> try:
...     onesum.Device("CPU:x")
... except ValueError as error:
...     print(error.code)
ErrorCode.INVALID_ARGUMENT
"""

from __future__ import annotations

from onesum._core import ErrorCode

__all__ = [
    "AbortedError",
    "DeadlineExceededError",
    "Error",
    "ErrorCode",
    "InternalError",
    "InvalidArgumentError",
    "ResourceExhaustedError",
    "UnavailableError",
    "UnimplementedError",
]


class Error(RuntimeError):
    """Every error of the library.

    >>> issubclass(onesum.DeadlineExceededError, onesum.Error)
    True
    """

    code: ErrorCode


class InvalidArgumentError(Error, ValueError):
    """Fix the call.

    >>> onesum.Shape([-1])
    Traceback (most recent call last):
    onesum.errors.InvalidArgumentError: extent -1 of axis 0 is negative
    """

    code = ErrorCode.INVALID_ARGUMENT


class UnimplementedError(Error, NotImplementedError):
    """Choose another policy."""

    code = ErrorCode.UNIMPLEMENTED


class UnavailableError(Error, ConnectionError):
    """Rebuild the group."""

    code = ErrorCode.UNAVAILABLE


class DeadlineExceededError(Error, TimeoutError):
    """Wait longer."""

    code = ErrorCode.DEADLINE_EXCEEDED


class AbortedError(Error, ConnectionError):
    """Look at the replica or worker that the message names."""

    code = ErrorCode.ABORTED


class ResourceExhaustedError(Error, MemoryError):
    """Free memory."""

    code = ErrorCode.RESOURCE_EXHAUSTED


class InternalError(Error):
    """Report a bug."""

    code = ErrorCode.INTERNAL


_CLASSES = {
    error.code: error
    for error in (
        InvalidArgumentError,
        UnimplementedError,
        UnavailableError,
        DeadlineExceededError,
        AbortedError,
        ResourceExhaustedError,
        InternalError,
    )
}
