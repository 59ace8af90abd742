"""Makes small packages that the real clients install."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping

from bot.simulation.registries.shelf import StoredPackage


def npm(
    name: str, version: str, *, says: str = "", requires: Mapping[str, str] | None = None, size: int = 0
) -> StoredPackage:
    """Make a package; `size` bytes of it are data that does not compress."""
    manifest = {"name": name, "version": version, "main": "index.js", "dependencies": dict(requires or {})}
    files = {
        "package/package.json": json.dumps(manifest).encode(),
        "package/index.js": f"module.exports = {json.dumps(says or name)};\n".encode(),
    }
    if size:
        files["package/data.bin"] = hashlib.shake_128(name.encode()).digest(size)
    return StoredPackage(name, version, f"{name.rpartition('/')[2]}-{version}.tgz", _tar(files), dict(requires or {}))


def wheel(name: str, version: str, *, says: str = "", size: int = 0) -> StoredPackage:
    module = name.replace("-", "_")
    about = f"{module}-{version}.dist-info"
    files = {
        f"{module}/__init__.py": f"SAYS = {says or name!r}\n".encode(),
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: forgehand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if size:
        files[f"{module}/data.bin"] = hashlib.shake_128(name.encode()).digest(size)
    files[f"{about}/RECORD"] = _record(files, f"{about}/RECORD")
    return StoredPackage(name, version, f"{module}-{version}-py3-none-any.whl", _zip(files))


def crate(name: str, version: str, *, says: str = "") -> StoredPackage:
    folder = f"{name}-{version}"
    files = {
        f"{folder}/Cargo.toml": f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2021"\n'.encode(),
        f"{folder}/src/lib.rs": f"pub const SAYS: &str = {json.dumps(says or name)};\n".encode(),
    }
    return StoredPackage(name, version, f"{folder}.crate", _tar(files))


def module(name: str, version: str, *, says: str = "") -> StoredPackage:
    package = name.rpartition("/")[2]
    files = {
        f"{name}@{version}/go.mod": f"module {name}\n".encode(),
        f"{name}@{version}/{package}.go": f"package {package}\n\nconst Says = {json.dumps(says or name)}\n".encode(),
    }
    return StoredPackage(name, version, f"{version}.zip", _zip(files))


def jar(group: str, artifact: str, version: str) -> StoredPackage:
    files = {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n", f"{artifact}.txt": artifact.encode()}
    return StoredPackage(f"{group}:{artifact}", version, f"{artifact}-{version}.jar", _zip(files))


def _tar(files: Mapping[str, bytes]) -> bytes:
    raw = io.BytesIO()
    with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return raw.getvalue()


def _zip(files: Mapping[str, bytes]) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return raw.getvalue()


def _record(files: Mapping[str, bytes], own: str) -> bytes:
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}")
    return ("\n".join([*lines, f"{own},,"]) + "\n").encode()
