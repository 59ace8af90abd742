"""Says what an answer of the service means, and what to do about it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.errors import TransientError

_RIGHTS = (
    "s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload, s3:ListBucket and "
    "s3:ListBucketMultipartUploads"
)
_REFUSALS = {
    "InvalidAccessKeyId": ("does not know the key", "Set FORGEHAND_FILES_KEY_ID to the id of a key that exists."),
    "SignatureDoesNotMatch": ("refuses the signature", "Set FORGEHAND_FILES_SECRET to the secret of this key."),
    "AccessDenied": ("denies access", f"Allow the key {_RIGHTS} on this bucket."),
    "NoSuchBucket": ("has no such bucket", "Create it, or correct its name in FORGEHAND_FILES_URL."),
    "RequestTimeTooSkewed": ("says that our clock is wrong", "Set the clock of this machine, best by NTP."),
}
_ELSEWHERE = {"AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException"}
_PASSING = {
    "RequestTimeout",
    "SlowDown",
    "OperationAborted",
    "IncompleteBody",
    "BadDigest",
    "XAmzContentSHA256Mismatch",
}


@dataclass(frozen=True)
class BucketAnswer:
    status: int
    headers: dict[str, str]
    body: bytes

    def texts(self, element: str) -> list[str]:
        """Return what each such element of an XML document holds; linear in its length."""
        _, *begun = self.body.decode("utf-8", "replace").split(f"<{element}>")
        ends = [one.partition(f"</{element}>") for one in begun]
        return [inside for inside, end, _ in ends if end]

    def text(self, element: str) -> str:
        return next(iter(self.texts(element)), "")


class BucketTrouble(TransientError):
    """The bucket cannot be used; the text says what to do, without any secret."""

    def __init__(self, bucket: str, words: str, fix: str, *, code: str = "", may_pass: bool = False) -> None:
        self.words = f"The service of the bucket {bucket} {words}."
        super().__init__(f"{self.words} {fix}")
        self.fix = fix
        self.code = code
        self.may_pass = may_pass
        """Tells whether the same request can succeed in a moment."""


def unreachable(bucket: str, why: str) -> BucketTrouble:
    fix = "Check that it runs, and the endpoint in FORGEHAND_FILES_URL."
    return BucketTrouble(bucket, f"does not answer ({why})", fix, may_pass=True)


def refused(bucket: str, answer: BucketAnswer) -> BucketTrouble:
    code = answer.text("Code")
    if code in _REFUSALS:
        return BucketTrouble(bucket, *_REFUSALS[code], code=code)
    region = answer.text("Region") or answer.headers.get("x-amz-bucket-region", "")
    if code in _ELSEWHERE or (answer.status in (301, 307, 400) and region):
        words = f"has it in another region{f': {region}' if re.fullmatch('[a-z0-9-]{1,40}', region) else ''}"
        return BucketTrouble(bucket, words, "Set region=… in FORGEHAND_FILES_URL to the bucket's region.", code=code)
    if answer.status == 403:  # to a HEAD it says no more
        return BucketTrouble(bucket, *_REFUSALS["AccessDenied"], code=code)
    may_pass = answer.status in (408, 429) or answer.status >= 500 or code in _PASSING or answer.status < 300
    shown = code if re.fullmatch("[A-Za-z0-9]{1,60}", code) else "no code"
    words = f"answered {answer.status} ({shown})"
    return BucketTrouble(bucket, words, "Try again later; if it stays, ask its operator.", code=code, may_pass=may_pass)
