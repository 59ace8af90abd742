"""Judges requests as Amazon does: who signed them, for which region, when, and whether the body is what was signed."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote

from starlette.requests import Request

MOST_SKEW = timedelta(minutes=15)
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/,]+)/(?P<day>\d{8})/(?P<region>[^/,]+)/(?P<service>[^/,]+)/aws4_request, ?"
    r"SignedHeaders=(?P<signed>[a-z0-9;-]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)


class Refused(Exception):
    def __init__(self, status: int, code: str, words: str = "", **more: str) -> None:
        super().__init__(f"{status} {code}: {words}")
        self.status = status
        self.code = code
        self.more = {"Message": words or code, **more}


@dataclass(frozen=True)
class Signers:
    keys: dict[str, str]
    region: str
    service: str = "s3"

    def judge(self, request: Request, body: bytes, now: datetime) -> None:
        """Refuse what Amazon refuses, in the order in which S3 looks."""
        found = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
        if found is None:
            raise Refused(403, "AccessDenied", "Anonymous access is forbidden")
        if found["region"] != self.region:
            wrong = f"the region '{found['region']}' is wrong; expecting '{self.region}'"
            raise Refused(400, "AuthorizationHeaderMalformed", wrong, Region=self.region)
        if found["service"] != self.service:
            raise Refused(400, "AuthorizationHeaderMalformed", "incorrect service")
        if (secret := self.keys.get(found["key"])) is None:
            raise Refused(403, "InvalidAccessKeyId", AWSAccessKeyId=found["key"])
        at = datetime.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if abs(now - at) > MOST_SKEW:
            raise Refused(403, "RequestTimeTooSkewed")
        if found["day"] != f"{at:%Y%m%d}":
            raise Refused(403, "SignatureDoesNotMatch", "another day")
        signed = found["signed"].split(";")
        must = {"host", *(name for name in request.headers if name.startswith("x-amz-"))}
        if not must <= {*signed} or signed != sorted(signed):
            raise Refused(403, "AccessDenied", "There were headers present in the request which were not signed")
        scope = f"{found['day']}/{self.region}/{self.service}/aws4_request"
        digest = hashlib.sha256(body).hexdigest()
        stated = request.headers["x-amz-content-sha256"] if self.service == "s3" else digest
        canonical = _canonical(request, signed, stated, path=_path(request, twice=self.service != "s3"))
        expected = _signature(secret, scope, request.headers["x-amz-date"], canonical)
        if not hmac.compare_digest(expected, found["signature"]):
            raise Refused(403, "SignatureDoesNotMatch")
        if stated != digest:
            raise Refused(400, "XAmzContentSHA256Mismatch")


def _path(request: Request, *, twice: bool) -> str:
    """Encode the path; services other than S3 encode again what is encoded already."""
    path = request.scope["raw_path"].decode("ascii")
    return quote(path if twice else unquote(path), safe="/-_.~")


def _canonical(request: Request, signed: list[str], digest: str, *, path: str) -> str:
    pairs = [one.partition("=") for one in request.scope["query_string"].decode("ascii").split("&") if one]
    query = sorted((quote(unquote(name), safe="-_.~"), quote(unquote(value), safe="-_.~")) for name, _, value in pairs)
    lines = [
        request.method,
        path,
        "&".join(f"{name}={value}" for name, value in query),
        *(f"{name}:{' '.join(request.headers[name].split())}" for name in signed),
        "",
        ";".join(signed),
        digest,
    ]
    return "\n".join(lines)


def _signature(secret: str, scope: str, date: str, canonical: str) -> str:
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}".encode(), "sha256").hexdigest()
