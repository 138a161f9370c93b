"""The ways in which corricl refuses, each with a code that the command line reports."""


class CorriclError(Exception):
    """Base of every error that corricl raises on purpose.

    `code` is the short machine-readable name in the JSON error object and
    `exit_code` is the exit status of the command line.
    """

    code = "error"
    exit_code = 1


class InputError(CorriclError, ValueError):
    """An argument or a file is unusable; the message says what is allowed."""

    code = "bad_input"
    exit_code = 2


class ConvergenceError(CorriclError, ArithmeticError):
    """A computation did not reach the accuracy that it promises."""

    code = "not_converged"
    exit_code = 3
