"""The certificate authority of one control plane, in a directory of its own, and the server's TLS context.

Files: `ca.key` and `server.key` (PKCS #8, mode 0600), `ca.crt` and `server.crt` (0644), the directory 0700.
Identity in client certificates is Kubernetes': common name = user, organizations = groups.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from steersman.kernel.effect import MICRO
from steersman.serve.files import FileError, locked, private_directory, read_file, write_file

# Names a client inside or beside the cluster uses, as kube-apiserver's own certificates have them.
SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "::1",
)
# As kubeadm: an authority outlives the installation, what it signs is renewed within a year.
CA_LIFETIME = datetime.timedelta(days=3650)
LEAF_LIFETIME = datetime.timedelta(days=365)
# Renewed this long before the end, so that a server started today does not run out next week.
RENEW_BEFORE = datetime.timedelta(days=30)
# Clocks of clients may lag behind ours.
SKEW = datetime.timedelta(minutes=5)
# A handshake carries them all each time.
MAX_GROUPS = 64
# RFC 5280, ub-common-name and ub-organization-name.
MAX_NAME = 64


class TLSError(FileError):
    """Certificates cannot be made or used. The text names the file and the remedy."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a client certificate speaks for."""

    user: str
    groups: tuple[str, ...]
    end: int
    """Until when, in microseconds: connections outlive handshakes."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Authority:
    """A CA on disk. `create` makes one, `load` reads one, `open` does whichever is needed."""

    directory: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, directory: Path) -> Authority:
        """Make the directory and a new CA in it. Refuses if there is one already. Raises FileError."""
        private_directory(directory)
        with locked(directory):
            return cls._create(directory)

    @classmethod
    def load(cls, directory: Path) -> Authority:
        """Read the CA of `directory`. Raises FileError: missing, unreadable, foreign or expired."""
        key_path, certificate_path = directory / "ca.key", directory / "ca.crt"
        try:
            key = _parse_key(key_path, read_file(key_path, private=True))
            certificate = _parse_certificate(certificate_path, read_file(certificate_path))
        except FileNotFoundError as error:
            raise TLSError(f"{error.filename} is missing; remove {directory} to begin a new authority") from None
        if _public(certificate.public_key()) != _public(key.public_key()):
            raise TLSError(f"{key_path} is not the key of {certificate_path}; {_anew(directory)}")
        if not _is_authority(certificate):
            raise TLSError(f"{certificate_path} is not the certificate of an authority; {_anew(directory)}")
        if certificate.not_valid_after_utc <= _now():
            ended = certificate.not_valid_after_utc.date()
            raise TLSError(f"{certificate_path} ended on {ended}; {_anew(directory)}")
        return cls(directory, certificate, key)

    @classmethod
    def open(cls, directory: Path) -> Authority:
        """Load the CA of `directory`, or make it if there is none. Raises FileError."""
        private_directory(directory)
        with locked(directory):
            if (directory / "ca.crt").is_symlink() or (directory / "ca.crt").exists():
                return cls.load(directory)
            return cls._create(directory)

    @classmethod
    def _create(cls, directory: Path) -> Authority:
        path = directory / "ca.crt"
        if path.exists() or path.is_symlink():
            raise TLSError(f"{path} exists already; load it, or remove {directory} to begin a new authority")
        key = ec.generate_private_key(ec.SECP256R1())
        now = _now()
        # A name of its own for each authority: OpenSSL finds issuers by name, and a client that trusts an
        # older authority of the same name would report a bad signature instead of an unknown issuer.
        digest = x509.SubjectKeyIdentifier.from_public_key(key.public_key()).digest
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"steersman-ca-{digest.hex()[:12]}")])
        builder = _builder(name, name, key.public_key(), now, CA_LIFETIME)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_key_usage(authority=True), critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier(digest), critical=False)
        certificate = builder.sign(key, hashes.SHA256())
        # The certificate comes last: a key alone is what an interrupted creation leaves, and is replaced.
        write_file(directory / "ca.key", _key_pem(key), 0o600)
        write_file(path, _pem(certificate), 0o644)
        return cls(directory, certificate, key)

    @property
    def pem(self) -> bytes:
        """The CA certificate, as clients embed it."""
        return _pem(self.certificate)

    def server_files(self, names: Iterable[str] = ()) -> tuple[Path, Path]:
        """Certificate and key file of the server, for SERVER_NAMES and `names` (DNS names or IP addresses).

        What is on disk is kept if it is ours, covers the names and lasts; otherwise it is made anew, with
        the names of the old one, since another server may use the directory. Raises FileError.
        """
        wanted = dict.fromkeys([*SERVER_NAMES, *(_canonical(name) for name in names)])
        certificate_path, key_path = self.directory / "server.crt", self.directory / "server.key"
        with locked(self.directory):
            present = self._usable_server(certificate_path, key_path)
            if present is not None:
                covered = _names(present)
                if set(wanted) <= set(covered) and present.not_valid_after_utc > _now() + RENEW_BEFORE:
                    return certificate_path, key_path
                wanted |= dict.fromkeys(covered)
            credential = self._issue(_subject("steersman", ()), ExtendedKeyUsageOID.SERVER_AUTH, list(wanted))
            write_file(key_path, credential.key, 0o600)
            write_file(certificate_path, credential.certificate, 0o644)
        return certificate_path, key_path

    def client(self, user: str, groups: Sequence[str] = (), lifetime: datetime.timedelta = LEAF_LIFETIME) -> Credential:
        """A new client certificate for `user` in `groups`. Raises TLSError for names it cannot hold."""
        if not user or len(user) > MAX_NAME:
            raise TLSError(f"a user name has 1 to {MAX_NAME} characters, not {len(user)}")
        if len(groups) > MAX_GROUPS:
            raise TLSError(f"a client certificate holds at most {MAX_GROUPS} groups, not {len(groups)}")
        for group in groups:
            if not group or len(group) > MAX_NAME:
                raise TLSError(f"a group name has 1 to {MAX_NAME} characters: {group[:40]!r}")
        return self._issue(_subject(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, [], lifetime)

    def _issue(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: list[str],
        lifetime: datetime.timedelta = LEAF_LIFETIME,
    ) -> Credential:
        key = ec.generate_private_key(ec.SECP256R1())
        now = _now()
        lifetime = min(lifetime, self.certificate.not_valid_after_utc - now)  # not beyond its issuer's
        issuer = self.certificate
        builder = _builder(subject, issuer.subject, key.public_key(), now, lifetime)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(authority=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
        )
        if names:
            general = [_general_name(name) for name in names]
            builder = builder.add_extension(x509.SubjectAlternativeName(general), critical=False)
        return Credential(_pem(builder.sign(self.key, hashes.SHA256())), _key_pem(key))

    def _usable_server(self, certificate_path: Path, key_path: Path) -> x509.Certificate | None:
        """The server certificate on disk, if it is ours and its key fits; None to make a new one.

        Unreadable files raise: they are someone's, and overwriting them would hide the trouble.
        """
        try:
            key = _parse_key(key_path, read_file(key_path, private=True))
            certificate = _parse_certificate(certificate_path, read_file(certificate_path))
        except FileNotFoundError:
            return None
        try:
            certificate.verify_directly_issued_by(self.certificate)
        except (ValueError, TypeError, InvalidSignature):
            return None  # of an authority that was here before
        if _public(certificate.public_key()) != _public(key.public_key()):
            return None  # a renewal was interrupted
        return certificate


def server_context(authority: Authority, names: Iterable[str] = ()) -> ssl.SSLContext:
    """TLS 1.2 or newer, HTTP/1.1 by ALPN, client certificates optional and verified against the authority.

    `names` as in Authority.server_files. Raises FileError.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    # All ciphers left are strong, and the client knows which its processor is fast at (most often AES-128).
    context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols(["http/1.1"])
    context.load_verify_locations(cadata=authority.pem.decode("ascii"))
    context.verify_mode = ssl.CERT_OPTIONAL
    renew(context, authority, names)
    return context


def renew(context: ssl.SSLContext, authority: Authority, names: Iterable[str] = ()) -> None:
    """Load the server certificate into `context`, made anew if it must be; new connections use it.

    A server that runs for months calls this now and then. Raises FileError.
    """
    certificate_path, key_path = authority.server_files(names)
    try:
        context.load_cert_chain(certificate_path, key_path)
    except (ssl.SSLError, OSError) as error:
        raise TLSError(f"cannot load {certificate_path} with {key_path}: {error}; remove both") from None


@lru_cache(maxsize=1024)  # one entry for each client certificate in use; parsing costs some 20 us
def subject_of(certificate: bytes) -> Subject:
    """User and groups of a verified client certificate (DER). Raises TLSError when it names no one user."""
    try:
        read = x509.load_der_x509_certificate(certificate)
        name = read.subject
        users = [str(field.value) for field in name.get_attributes_for_oid(NameOID.COMMON_NAME)]
        groups = [str(field.value) for field in name.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    except ValueError as error:
        raise TLSError(f"the client certificate cannot be read: {error}") from None
    if len(users) != 1 or not users[0]:
        raise TLSError(f"the client certificate has {len(users)} common names; it needs one, the user")
    return Subject(users[0], tuple(groups), int(read.not_valid_after_utc.timestamp()) * MICRO)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime.datetime,
    lifetime: datetime.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + lifetime)
    )


def _key_usage(authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _subject(user: str, groups: Iterable[str]) -> x509.Name:
    organizations = [_attribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, _attribute(NameOID.COMMON_NAME, user)])


def _attribute(oid: x509.ObjectIdentifier, value: str) -> x509.NameAttribute[str]:
    return x509.NameAttribute(oid, value)


def _canonical(name: str) -> str:
    """A DNS name or IP address in the one form the certificate has it."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        lowered = name.lower()
    if not lowered.isascii() or not lowered or any(ch.isspace() or ch in "/:" for ch in lowered):
        raise TLSError(f"{name!r} is neither a DNS name nor an IP address")
    return lowered


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return [str(name.value) for name in extension.value if isinstance(name, x509.DNSName | x509.IPAddress)]


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def _parse_key(path: Path, data: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise TLSError(f"{path} is not an unencrypted PEM private key; {_anew(path.parent)}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TLSError(f"{path} is not an elliptic-curve key, so not one of ours; {_anew(path.parent)}")
    return key


def _parse_certificate(path: Path, data: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(data)
    except ValueError:
        raise TLSError(f"{path} is not a PEM certificate; {_anew(path.parent)}") from None


def _anew(directory: Path) -> str:
    return f"name another directory, or remove {directory} to begin a new authority (clients need its kubeconfig)"


def _public(key: object) -> bytes:
    assert hasattr(key, "public_bytes")
    der, info = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    encoded: bytes = key.public_bytes(der, info)
    return encoded


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
