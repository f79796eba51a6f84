"""Says in plain words why the mail server cannot be reached or used."""

import os
import socket
import ssl

from aiosmtplib.errors import SMTPAuthenticationError, SMTPException, SMTPResponseException

from largesse.mail.mime import one_line

_REASON_CHARACTERS = 500
# The first that matches decides.
_WORDS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (ssl.SSLError, "it does not speak TLS there"),
    (SMTPResponseException, "it does not speak SMTP there"),
    ((socket.gaierror, UnicodeError), "its name was not found"),
    (TimeoutError, "it does not answer"),
    (ConnectionRefusedError, "nobody listens there"),
    (ConnectionError, "it ended the connection"),
)


class MailServerAwayError(Exception):
    """The mail server cannot be reached or used. The text says why, as in "it does not answer"."""


def cause_of(error: BaseException) -> BaseException:
    """Returns the error of the socket that the library's error wraps, or the error itself."""
    while isinstance(error.__cause__, OSError):
        error = error.__cause__
    return error


def as_text(code: int | None, said: str) -> str:
    """Returns a reply code and the server's words for people, without bytes that cannot be stored."""
    return one_line(f"{code or ''} {said}")[:_REASON_CHARACTERS]


def why(error: BaseException) -> str:
    """Returns the words for an error of a connection, as the end of a sentence."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted ({error.verify_message.rstrip('.')})"
        case SMTPAuthenticationError():
            return f"it refuses the login ({error.code})"  # its words may repeat what was typed
        case SMTPResponseException() if 400 <= error.code < 600:
            return f"it answers {as_text(error.code, error.message)}"
        case SMTPException() if type(error) is SMTPException and "auth" in str(error).lower():
            return "it takes no login with a user name and a password (AUTH PLAIN, LOGIN or CRAM-MD5)"
        case SMTPException() if "STARTTLS" in str(error):
            return "it does not offer STARTTLS, which is required"
    for kinds, words in _WORDS:
        if isinstance(error, kinds):
            return words
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
