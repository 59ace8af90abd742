"""Certificates of a test CA, and contexts that serve with them."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)
AUTHORITY, SERVER = (
    x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("An authority", "A server")
)
LOOPBACK = x509.IPAddress(ip_address("127.0.0.1"))


class Authority:
    """A CA: a client trusts `file`, and `server` makes a server's context."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = folder / "authority.pem"
        certificate = _builder(AUTHORITY, AUTHORITY, self._key).add_extension(x509.BasicConstraints(True, None), True)
        self.file.write_bytes(certificate.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def server(self, name: x509.GeneralName = LOOPBACK, ends: timedelta = DAY, *, own: bool = False) -> ssl.SSLContext:
        """Make a server's context, with an `own` (self-signed) certificate if wanted."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(SERVER, SERVER if own else AUTHORITY, key, ends)
        builder = builder.add_extension(x509.SubjectAlternativeName([name]), False)
        shown = builder.sign(key if own else self._key, hashes.SHA256())
        file = self._folder / "server.pem"
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file.write_bytes(secret + shown.public_bytes(Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, ends: timedelta = DAY
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - 9 * DAY).not_valid_after(now + ends)
