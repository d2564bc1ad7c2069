"""Certificates for approved signing requests, by the cluster's authority.

Source of the rules (backdating, usages, what of a request is taken over): Kubernetes 1.36,
pkg/controller/certificates/authority. Never an authority's certificate, whatever is asked for.
"""

from __future__ import annotations

import datetime
from typing import Final

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, ObjectIdentifier

from steersman.serve.credentials.tls import SKEW, Authority

SHORT: Final = 8 * 3600
"""Seconds: a certificate that lasts less is not shortened by the backdating."""
KEY_USAGES: Final = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
}
PURPOSES: Final = {
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "code signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "s/mime": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ocsp signing": ExtendedKeyUsageOID.OCSP_SIGNING,
}
"""Usages that signers of the cluster allow, and harmless ones; others (cert sign, any) are never given."""


def sign_request(authority: Authority, payload: bytes) -> bytes:
    """The certificate (PEM) for a request as `api.certificates` asks for it. Its subject and names are taken over;
    they were judged before."""
    wanted = orjson.loads(payload)
    asked = x509.load_pem_x509_csr(wanted["request"].encode("ascii"))
    now = datetime.datetime.fromtimestamp(wanted["now"], datetime.UTC)
    seconds = wanted["seconds"]
    end = now + datetime.timedelta(seconds=seconds) - (SKEW if seconds >= SHORT else datetime.timedelta(0))
    issuer = authority.certificate
    given = {KEY_USAGES[usage] for usage in wanted["usages"] if usage in KEY_USAGES}
    purposes = dict.fromkeys(PURPOSES[usage] for usage in wanted["usages"] if usage in PURPOSES)
    builder = (
        x509.CertificateBuilder()
        .subject_name(asked.subject)
        .issuer_name(issuer.subject)
        .public_key(asked.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(min(end, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
    )
    if given:  # none of them is not the same as no extension: verifiers would then refuse every use
        builder = builder.add_extension(_key_usage(given), critical=True)
    if purposes:
        builder = builder.add_extension(x509.ExtendedKeyUsage(_listed(purposes)), critical=False)
    try:
        names = asked.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = None
    if names is not None:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(names)), critical=False)
    return builder.sign(authority.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _listed(purposes: dict[ObjectIdentifier, None]) -> list[ObjectIdentifier]:
    return sorted(purposes, key=lambda purpose: purpose.dotted_string)


def _key_usage(given: set[str]) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature="digital_signature" in given,
        content_commitment="content_commitment" in given,
        key_encipherment="key_encipherment" in given,
        data_encipherment="data_encipherment" in given,
        key_agreement="key_agreement" in given,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
