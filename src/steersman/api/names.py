"""Names, label keys and label values: what Kubernetes allows, what it says, and how it makes names up.

Each check returns the list of problems, in Kubernetes' words; an empty list means that the text is fine.
Source of the facts: RFC 1035, RFC 1123, and apimachinery `pkg/util/validation`, `pkg/api/validate/content`,
`pkg/util/rand` and apiserver `pkg/storage/names`, release 1.36.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

LABEL_MAX: Final = 63  # bytes of a DNS label, of a label value and of the name part of a label key
SUBDOMAIN_MAX: Final = 253  # bytes of a DNS subdomain
SUFFIX_LENGTH: Final = 5  # characters that generateName appends
GENERATED_BASE_MAX: Final = LABEL_MAX - SUFFIX_LENGTH

# No vowels and no easily confused digits, so that no suffix spells a word.
ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_SEARCH_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = _SEARCH_LABEL + r"(\." + _SEARCH_LABEL + ")*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = "(" + _KEY + ")?"

_label = re.compile(_LABEL).fullmatch
_subdomain = re.compile(_SUBDOMAIN).fullmatch
_search = re.compile(_SEARCH).fullmatch
_label_1035 = re.compile(_LABEL_1035).fullmatch
_key = re.compile(_KEY).fullmatch
_value = re.compile(_VALUE).fullmatch

_OCTET = "0*(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
_octets_with_zeros = re.compile(_OCTET + (r"\." + _OCTET) * 3).fullmatch

NOT_AN_IP: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_ENDS = "must start and end with an alphanumeric character"
_IN_LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and " + _ENDS
_IN_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and " + _ENDS
)
_IN_SEARCH = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and " + _ENDS
)
_IN_WILDCARD = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_IN_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_IN_KEY = "must consist of alphanumeric characters, '-', '_' or '.', and " + _ENDS
_IN_VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and " + _ENDS


def dns1123_label(text: str) -> list[str]:
    """Problems of `text` as a DNS-1123 label (names of namespaces, containers, volumes)."""
    problems = _too_long(text, LABEL_MAX, "characters")
    if not _label(text):
        if _subdomain(text):
            problems.append("must not contain dots")
        else:
            problems.append(_mismatch(_IN_LABEL, _LABEL, "my-name", "123-abc"))
    return problems


def dns1123_subdomain(text: str) -> list[str]:
    """Problems of `text` as a DNS-1123 subdomain (names of most objects)."""
    problems = _too_long(text, SUBDOMAIN_MAX, "characters")
    if not _subdomain(text):
        problems.append(_mismatch(_IN_SUBDOMAIN, _SUBDOMAIN, "example.com"))
    return problems


def search_domain(text: str) -> list[str]:
    """Problems of `text` as a DNS subdomain whose labels may begin with an underscore (search paths of a pod)."""
    problems = _too_long(text, SUBDOMAIN_MAX, "characters")
    if not _search(text):
        problems.append(_mismatch(_IN_SEARCH, _SEARCH, "example.com"))
    return problems


def wildcard_subdomain(text: str) -> list[str]:
    """Problems of `text` as a DNS subdomain whose first label is a star (hosts of an Ingress)."""
    problems = _too_long(text, SUBDOMAIN_MAX, "characters")
    if not text.startswith("*.") or not _subdomain(text[2:]):
        problems.append(_mismatch(_IN_WILDCARD, r"\*\." + _SUBDOMAIN, "*.example.com"))
    return problems


def full_domain(text: str) -> list[str]:
    """Problems of `text` as a DNS name of two labels or more."""
    name = text.removesuffix(".")
    problems = dns1123_subdomain(name)
    if not problems and "." not in name:
        problems.append("should be a domain with at least two segments separated by dots")
    return problems


def path_segment(text: str) -> list[str]:
    """Problems of a name that only has to fit into a URL (the names of roles)."""
    problems = [f"may not be '{text}'"] if text in (".", "..") else []
    problems += [f"may not contain '{char}'" for char in ("/", "%") if char in text]
    return [*problems, "may not contain NUL, which ends names in the journal"] if "\0" in text else problems


def canonical_ip(text: str) -> list[str]:
    """Problems of `text` as an address of IPv4 or IPv6 in the one form it is to have (the names of IPAddresses)."""
    try:
        address: IPv4Address | IPv6Address | None = ip_address(text)
    except ValueError:
        address = None
    if address is None or getattr(address, "scope_id", None) is not None:
        return ["must not have leading 0s"] if _octets_with_zeros(text) else [NOT_AN_IP]
    if getattr(address, "ipv4_mapped", None) is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return [] if str(address) == text else [f'must be in canonical form ("{address}")']


def dns1035_label(text: str) -> list[str]:
    """Problems of `text` as a DNS-1035 label (names of Services)."""
    problems = _too_long(text, LABEL_MAX, "characters")
    if not _label_1035(text):
        problems.append(_mismatch(_IN_1035, _LABEL_1035, "my-name", "abc-123"))
    return problems


def qualified_name(text: str) -> list[str]:
    """Problems of `text` as a qualified name: a label or annotation key, with an optional `prefix/`."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        problem = "a valid label key " + _mismatch(_IN_KEY, _KEY, "MyName", "my.name", "123-abc")
        return [problem + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += ["prefix part " + problem for problem in _subdomain_bytes(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    else:
        problems += ["name part " + problem for problem in _too_long(name, LABEL_MAX, "bytes")]
    if not _key(name):
        problems.append("name part " + _mismatch(_IN_KEY, _KEY, "MyName", "my.name", "123-abc"))
    return problems


def label_value(text: str) -> list[str]:
    """Problems of `text` as the value of a label."""
    problems = _too_long(text, LABEL_MAX, "bytes")
    if not _value(text):
        problems.append(_mismatch(_IN_VALUE, _VALUE, "MyValue", "my_value", "12345"))
    return problems


def as_prefix(text: str) -> str:
    """`text` as it is judged when it is a generateName: a dash at its end is allowed, for more will follow."""
    return text[:-1] + "a" if len(text) > 1 and text.endswith("-") else text


def _subdomain_bytes(text: str) -> list[str]:
    problems = _too_long(text, SUBDOMAIN_MAX, "bytes")
    if not _subdomain(text):
        problems.append(_mismatch(_IN_SUBDOMAIN, _SUBDOMAIN, "example.com"))
    return problems


def _too_long(text: str, limit: int, unit: str) -> list[str]:
    # The server counts bytes even where it says characters.
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return [f"must be no more than {limit} {unit}"] if size > limit else []


def _mismatch(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def name_suffix(entropy: int | bytes, length: int = SUFFIX_LENGTH) -> str:
    """`length` characters of the alphabet, a function of `entropy` alone: its low digits in base 27.

    Randomness is the caller's; 27^5 is about 14 million suffixes. A negative int or `length` is an error.
    """
    number = int.from_bytes(entropy, "big") if isinstance(entropy, bytes) else entropy
    if number < 0 or length < 0:
        raise ValueError(f"entropy {number} and length {length} must not be negative")
    chars = []
    for _ in range(length):
        number, digit = divmod(number, len(ALPHABET))
        chars.append(ALPHABET[digit])
    return "".join(chars)


def generate_name(base: str, suffix: str) -> str:
    """The name made of a generateName and a suffix; `base` is cut so that the whole has at most 63 characters."""
    return base[: LABEL_MAX - len(suffix)] + suffix if len(suffix) < LABEL_MAX else suffix[:LABEL_MAX]


def safe_encode(text: str) -> str:
    """`text` mapped character by character into the alphabet, as in the pod-template-hash of a ReplicaSet."""
    return "".join(ALPHABET[ord(char) % len(ALPHABET)] for char in text)
