"""The authority's files, and real handshakes between Python's ssl and the server."""

from __future__ import annotations

import asyncio
import datetime
import http.client
import json
import os
import socket
import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from steersman.serve.credentials import tls
from steersman.serve.credentials.tls import Authority, TLSError, renew, server_context, subject_of
from steersman.serve.files import FileError, write_file
from steersman.serve.http import Limits, Request, Response, serve
from tests.serve.harness import Ticker, in_loop, until


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def alternative_names(path: Path) -> set[str]:
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in names}


def client_context(authority: Authority, directory: Path | None = None, **subject: object) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.pem.decode())
    if directory is not None:
        credential = authority.client(**subject)  # type: ignore[arg-type]
        (directory / "client.pem").write_bytes(credential.certificate + credential.key)
        context.load_cert_chain(directory / "client.pem")
    return context


async def who(request: Request) -> Response:
    if request.peer_certificate is None:
        return Response(200, (), b"null")
    subject = subject_of(request.peer_certificate)
    return Response(200, (), json.dumps([subject.user, list(subject.groups)]).encode())


def get(host: str, port: int, context: ssl.SSLContext) -> bytes:
    link = http.client.HTTPSConnection(host, port, context=context, timeout=5)
    try:
        link.request("GET", "/")
        return link.getresponse().read()
    finally:
        link.close()


# -- files


def test_an_authority_is_made_once_and_read_again(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "pki"
    old = os.umask(0)
    try:
        made = Authority.create(directory)
        made.server_files()
    finally:
        os.umask(old)
    assert mode(directory) == 0o700
    assert {path.name: mode(path) for path in directory.iterdir()} == {
        "ca.key": 0o600,
        "ca.crt": 0o644,
        "server.key": 0o600,
        "server.crt": 0o644,
    }
    assert Authority.load(directory).pem == Authority.open(directory).pem == made.pem
    with pytest.raises(TLSError, match="exists already"):
        Authority.create(directory)


def test_an_interrupted_creation_is_begun_anew(tmp_path: Path) -> None:
    directory = tmp_path / "pki"
    Authority.create(directory)
    (directory / "ca.crt").unlink()
    with pytest.raises(TLSError, match=r"ca\.crt is missing; remove"):
        Authority.load(directory)
    Authority.open(directory)
    Authority.load(directory)


def test_the_server_certificate_is_renewed_only_when_it_must_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority.create(tmp_path / "pki")
    certificate, key = authority.server_files()
    assert alternative_names(certificate) == set(tls.SERVER_NAMES)
    first = certificate.read_bytes()
    authority.server_files(["LOCALHOST", "0:0:0:0:0:0:0:1"])  # the same names, written otherwise
    assert certificate.read_bytes() == first
    authority.server_files(["10.0.0.5", "api.example.org"])
    assert alternative_names(certificate) == {*tls.SERVER_NAMES, "10.0.0.5", "api.example.org"}
    second = certificate.read_bytes()
    authority.server_files()  # fewer names: another server may want the others
    assert certificate.read_bytes() == second
    later = datetime.datetime.now(datetime.UTC) + tls.LEAF_LIFETIME - tls.RENEW_BEFORE
    monkeypatch.setattr(tls, "_now", lambda: later + datetime.timedelta(minutes=1))
    authority.server_files()
    assert certificate.read_bytes() != second
    assert alternative_names(certificate) == {*tls.SERVER_NAMES, "10.0.0.5", "api.example.org"}
    assert {mode(key), mode(certificate)} == {0o600, 0o644}


def test_a_server_pair_that_does_not_fit_is_replaced(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "pki")
    other = Authority.create(tmp_path / "other")
    certificate, key = authority.server_files()
    for source in (other.server_files()[1], None):
        if source is not None:
            key.write_bytes(source.read_bytes())  # a renewal cut short after the key
        else:
            certificate.write_bytes(other.server_files()[0].read_bytes())
        server_context(authority)
        loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
        loaded.verify_directly_issued_by(authority.certificate)


def test_files_that_cannot_be_used_are_named_with_a_remedy(tmp_path: Path) -> None:
    directory = tmp_path / "pki"
    authority = Authority.create(directory)
    key, certificate = directory / "ca.key", directory / "ca.crt"
    good = {key: key.read_bytes(), certificate: certificate.read_bytes()}

    def refused(text: str) -> None:
        with pytest.raises(FileError, match=text) as caught:
            Authority.open(directory)
        assert str(directory) in str(caught.value) and ";" in str(caught.value)
        for path, data in good.items():
            path.unlink(missing_ok=True)
            write_file(path, data, 0o600 if path is key else 0o644)

    key.chmod(0o640)
    refused("can be read by others .mode 0640.; run: chmod 600")
    key.write_bytes(b"nonsense")
    refused(r"ca\.key is not an unencrypted PEM private key")
    foreign = rsa.generate_private_key(65537, 2048)
    key.write_bytes(foreign.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    refused("not an elliptic-curve key")
    strange = ec.generate_private_key(ec.SECP256R1())
    key.write_bytes(strange.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    refused("is not the key of")
    certificate.write_bytes(b"\xff\xfe")
    refused("not a PEM certificate")
    leaf = authority.client("someone")
    certificate.write_bytes(leaf.certificate)
    write_file(key, leaf.key, 0o600)
    refused("not the certificate of an authority")
    certificate.unlink()
    certificate.symlink_to(tmp_path / "elsewhere")
    refused("symlink")
    key.unlink()
    os.mkfifo(key, 0o600)
    refused("not a regular file")
    Authority.load(directory)


def test_an_expired_authority_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority.create(tmp_path / "pki")
    monkeypatch.setattr(tls, "_now", lambda: authority.certificate.not_valid_after_utc)
    with pytest.raises(TLSError, match=r"ca\.crt ended on 20\d\d-.*begin a new authority"):
        Authority.load(tmp_path / "pki")


def test_client_certificates_carry_user_and_groups(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "pki")
    credential = authority.client("system:node:ä", ["system:nodes", "system:masters"])
    certificate = x509.load_pem_x509_certificate(credential.certificate)
    subject = subject_of(certificate.public_bytes(Encoding.DER))
    assert subject.user == "system:node:ä" and sorted(subject.groups) == ["system:masters", "system:nodes"]
    for arguments in (("",), ("u" * 65,), ("u", [""]), ("u", ["g"] * 65)):
        with pytest.raises(TLSError, match=r"user name|group"):
            authority.client(*arguments)  # type: ignore[arg-type]
    with pytest.raises(TLSError, match="cannot be read"):
        subject_of(b"\x30\x00")
    with pytest.raises(TLSError, match="neither a DNS name nor an IP address"):
        authority.server_files(["https://x"])


# -- handshakes


@in_loop
async def test_clients_verify_the_server_and_the_server_its_clients(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "pki")
    stranger = Authority.create(tmp_path / "stranger")
    async with await serve(who, ["127.0.0.1"], ssl=server_context(authority)) as server:

        async def call(context: ssl.SSLContext, host: str = "127.0.0.1") -> object:
            return json.loads(await asyncio.to_thread(get, host, server.port, context))

        assert await call(client_context(authority)) is None
        assert await call(client_context(authority), "localhost") is None
        admin = client_context(authority, tmp_path, user="jane", groups=["system:masters"])
        assert await call(admin) == ["jane", ["system:masters"]]
        old = client_context(authority)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        assert await call(old) is None
        with pytest.raises(ssl.SSLCertVerificationError):
            await call(client_context(stranger))
        outsider = client_context(authority)
        outsider.load_cert_chain(*stranger.server_files())
        credential = stranger.client("jane", ["system:masters"])
        (tmp_path / "outsider.pem").write_bytes(credential.certificate + credential.key)
        outsider.load_cert_chain(tmp_path / "outsider.pem")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await call(outsider)
        own_server = client_context(authority)  # a server certificate is no client's
        own_server.load_cert_chain(*authority.server_files())
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await call(own_server)
        await until(lambda: server.connections == 0)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@in_loop
async def test_alpn_is_http_1_1_and_old_versions_are_refused(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "pki")
    async with await serve(who, ssl=server_context(authority)) as server:

        def handshake(context: ssl.SSLContext) -> tuple[str | None, str | None]:
            with (
                socket.create_connection(server.addresses[0], timeout=5) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
            ):
                return secure.selected_alpn_protocol(), secure.version()

        modern = client_context(authority)
        modern.set_alpn_protocols(["h2", "http/1.1"])
        assert await asyncio.to_thread(handshake, modern) == ("http/1.1", "TLSv1.3")
        ancient = client_context(authority)
        ancient.minimum_version = ssl.TLSVersion.TLSv1
        ancient.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.to_thread(handshake, ancient)


@pytest.mark.parametrize("first", ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"])
@in_loop
async def test_the_client_chooses_the_cipher_its_processor_is_fast_at(tmp_path: Path, first: str) -> None:
    authority = Authority.create(tmp_path / "pki")
    async with await serve(who, ssl=server_context(authority)) as server:
        context = client_context(authority)
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # the ciphers of 1.3 cannot be put in order from here
        context.set_ciphers(f"ECDHE-ECDSA-{first}:ECDHE+AESGCM:ECDHE+CHACHA20")

        def chosen() -> object:
            with (
                socket.create_connection(server.addresses[0], timeout=5) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
            ):
                return secure.cipher()

        assert (await asyncio.to_thread(chosen))[0] == f"ECDHE-ECDSA-{first}"  # type: ignore[index]


@in_loop
async def test_a_renewed_certificate_is_served_without_a_restart(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "pki")
    context = server_context(authority)
    async with await serve(who, "127.0.0.2", ssl=context) as server:
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(get, "127.0.0.2", server.port, client_context(authority))
        renew(context, authority, ["127.0.0.2"])
        assert await asyncio.to_thread(get, "127.0.0.2", server.port, client_context(authority)) == b"null"


@in_loop
async def test_watches_over_tls_end_at_once(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "pki")
    ticker = Ticker()
    server = await serve(ticker, ssl=server_context(authority))
    links = []
    for _ in range(5):
        secure = {"ssl": client_context(authority), "server_hostname": "localhost"}
        links.append(await asyncio.open_connection("127.0.0.1", server.port, **secure))
        links[-1][1].write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await until(lambda: ticker.open == 5)
    links[0][1].transport.abort()
    await until(lambda: ticker.open == 4)
    links[1][1].close()
    await until(lambda: ticker.open == 3)
    reading = [asyncio.create_task(reader.read()) for reader, _ in links[2:4]]  # the last one reads nothing
    await asyncio.wait_for(server.close(), 1.5)
    assert (ticker.open, server.connections) == (0, 0)
    for body in await asyncio.gather(*reading):
        assert body.endswith(b"\r\n0\r\n\r\n")


@in_loop
async def test_failed_handshakes_are_no_news(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    authority = Authority.create(tmp_path / "pki")
    async with await serve(who, ssl=server_context(authority), limits=Limits(connections=3)) as server:
        for _ in range(5):
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: plain text\r\n\r\n")
            await asyncio.sleep(0.02)
            writer.close()
        await until(lambda: server.connections == 0)  # they hold no place
        silent = await asyncio.open_connection("127.0.0.1", server.port)  # and one that never speaks
        await until(lambda: server.connections == 1)
    assert server.connections == 0
    silent[1].close()
    assert caplog.records == []


LARGE = 3 << 20
LAST_REQUESTS = {
    "its last response": (b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", b"x" * LARGE),
    "a response to HTTP/1.0": (b"GET / HTTP/1.0\r\n\r\n", b"x" * LARGE),
    "a refusal": (b"no HTTP at all\r\n\r\n", b'"code":400,"reason":"BadRequest"}'),
}


@pytest.mark.parametrize(("request_bytes", "end"), LAST_REQUESTS.values(), ids=LAST_REQUESTS)
@in_loop
async def test_a_tls_connection_ends_after(request_bytes: bytes, end: bytes, tmp_path: Path) -> None:
    """A client that reads until the end is not left waiting for it, and gets everything before it."""
    authority = Authority.create(tmp_path / "pki")

    async def large(_: Request) -> Response:
        return Response(200, (), b"x" * LARGE)

    async with await serve(large, ssl=server_context(authority)) as server:
        secure = {"ssl": client_context(authority), "server_hostname": "localhost"}
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, **secure)
        writer.write(request_bytes)
        answer = await asyncio.wait_for(reader.read(), 4)
        assert answer.endswith(end)
        await until(lambda: server.connections == 0)
        writer.close()
