"""Mask passwords, tokens and keys in addresses before they are printed or recorded."""

from __future__ import annotations

import re

MASK = "***"
WORDS = "pass|pwd|token|secret|key|auth|cred|signature|sig"
ADDRESS = re.compile(r"://(?P<rest>[^\n\"'<>]*?)(?=[\n\"'<>]|\w+://|$)")
# the value of odbc_connect is a complete connection string, including the password
QUERY = re.compile(rf"(?i)([?&;][\w.%-]*(?:{WORDS})[\w.%-]*=)[^\s&;#\"']*")
ODBC = re.compile(r"(?i)(odbc_connect=)[^&\n\"']*")
ASSIGNMENT = re.compile(r"(?i)\b(pwd|password)(\s*=\s*)(?:\{[^}]*\}|[^\s;&\"']+)")
HEADER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")


def mask_secrets(text: str) -> str:
    """Replace each password, token and key of the addresses in a text by ``***``.

    Covers the user information of an address (also a password with ``/`` or a blank, and a
    token in place of a user name), query keys such as ``sslpassword``, ODBC connection
    strings, and the tokens of authorization headers.

    >>> mask_secrets("postgresql://me:pa/ss@host/db?sslpassword=x")
    'postgresql://me:***@host/db?sslpassword=***'
    """
    text = ADDRESS.sub(lambda address: f"://{_mask_user(address['rest'])}", text)
    text = ASSIGNMENT.sub(rf"\g<1>\g<2>{MASK}", ODBC.sub(rf"\g<1>{MASK}", text))
    text = QUERY.sub(rf"\g<1>{MASK}", text)
    return HEADER.sub(rf"\g<1> {MASK}", text)


def _mask_user(rest: str) -> str:
    """Mask the user information of an address, given the text that follows ``://``.

    It ends at the last ``@`` before the path.  Without such an ``@``, a colon that is not followed
    by a port means that the password contains ``/``, ``?``, ``#`` or a blank.
    """
    authority = re.split(r"[/?#\s]", rest, maxsplit=1)[0]
    end = authority.rfind("@")
    if end < 0 and re.search(r":(?!\d*$)", authority.rpartition("]")[2]):
        end = rest.rfind("@")
    if end < 0:
        return rest
    user, colon, _ = rest[:end].partition(":")
    return f"{user}:{MASK}{rest[end:]}" if colon else f"{MASK}{rest[end:]}"
