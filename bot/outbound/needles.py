"""The forms in which a secret may stand in a text, and how secrets look that nobody told us of."""

from __future__ import annotations

import base64
import re

SHORTEST = 6  # a shorter value would redact ordinary words

PEM_BODY = 16_384
_B64 = "A-Za-z0-9_-"
_JWT_HEAD = 1_000
"""Without a bound every `eyJ` in a flood of them would be read on to its end."""
TOKEN = re.compile(
    r"gh[opurs]_[A-Za-z0-9._-]{36,}"  # both formats of installation tokens: 40 characters, or one that holds a JWT
    r"|github_pat_[A-Za-z0-9_]{22,}"
    r"|sk-(?:ant-|proj-)?[A-Za-z0-9_-]{20,}"
    r"|fht_[A-Za-z0-9_-]{20,}"
    r"|e2b_[A-Za-z0-9_-]{16,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|AIza[A-Za-z0-9_-]{35}"
    r"|glpat-[A-Za-z0-9_-]{20,}"
    r"|npm_[A-Za-z0-9]{36,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}"
    r"|[sr]k_live_[A-Za-z0-9]{16,}"
    r"|hf_[A-Za-z0-9]{34,}"
    r"|pypi-AgE[A-Za-z0-9_-]{50,}"
    r"|ya29\.[A-Za-z0-9_-]{20,}"
    r"|do[opr]_v1_[a-f0-9]{64}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}"
    rf"|eyJ[{_B64}]{{8,{_JWT_HEAD}}}+\.[{_B64}]{{8,}}+\.[{_B64}]{{8,}}"
    r"|(?<=://)[^\s/:@\[\]<>]*:[^\s/@\[\]<>]+(?=@)"
)
PEM = re.compile(
    rf"-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY-----(?:(?!-----END)[\s\S]){{0,{PEM_BODY}}}"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----)?"
)
OPEN_PEM = re.compile(r"-----BEGIN(?:\Z| [A-Z0-9 ]{0,40}(?:-{0,5}\Z|PRIVATE KEY-----))")
END_PEM = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----")


def parts(value: str) -> list[str]:
    """What of a value is secret by itself: the whole, and each long line of a key."""
    whole = value.strip()
    lines = [line.strip() for line in whole.splitlines() if not line.startswith("-----")]
    found = [whole, *(line for line in lines if len(line) >= 16)]
    return [one for one in dict.fromkeys(found) if len(one) >= SHORTEST]


def forms(value: str) -> frozenset[str]:
    """Escapes (URL, JSON, HTML) are undone by `views`; here are the forms that hide the value's characters."""
    raw = value.encode("utf-8", "surrogatepass")
    found = {value, value[::-1], "".join(value.split()), raw.decode("latin-1"), raw.hex(), raw.hex().upper()}
    for shift in range(3):
        found.add(_base64_core(raw, shift))
        found.add(_base64_core(raw, shift).translate(str.maketrans("+/", "-_")))
    return frozenset(form for form in found if len(form) >= SHORTEST)


def _base64_core(raw: bytes, shift: int) -> str:
    """The characters that depend on the value alone, when it stands `shift` bytes after a multiple of three."""
    text = base64.b64encode(b"\0" * shift + raw).decode("ascii")
    return text[-(-8 * shift // 6) : 8 * (shift + len(raw)) // 6]
