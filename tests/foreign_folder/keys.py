"""All settings of git by which a repository's config could run a program, read or write a file, or reach a host.

Each row is planted in a folder, and every command of ours is run there (`test_keys`). All other settings that git knows
are in `harmless_keys.txt`; one that is in neither is a new one, and somebody has to judge it.

In a value stand for what is planted: {run} a program that leaves a trace, {hooks} a folder of such programs, {file} a
private file, {new} a path where nothing must appear, {net} an address at which somebody listens, {remote} what the
address of the real remote begins with.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Does(StrEnum):
    """The worst of it."""

    RUNS = "runs a program"
    READS = "reads a file"
    WRITES = "writes a file"
    SENDS = "reaches a host, or says what goes there"


@dataclass(frozen=True)
class Key:
    name: str
    """As git's documentation has it, with its placeholders."""
    does: Does
    planted: tuple[tuple[str, str], ...]
    why: str
    proof: tuple[str, ...] = ()
    """A git command that shows, run by a careless person, that what is planted is alive; none where that would take a
    terminal, a server or a program that is not on every machine."""


def _runs(name: str, value: str, why: str, *proof: str, at: str = "", also: tuple[tuple[str, str], ...] = ()) -> Key:
    return Key(name, Does.RUNS, ((at or name, value), *also), why, proof)


def _reads(name: str, why: str, *, at: str = "", value: str = "{file}") -> Key:
    return Key(name, Does.READS, ((at or name, value),), why)


def _writes(name: str, why: str, *, value: str = "{new}") -> Key:
    return Key(name, Does.WRITES, ((name, value),), why)


def _sends(name: str, value: str, why: str, *, at: str = "", also: tuple[tuple[str, str], ...] = ()) -> Key:
    return Key(name, Does.SENDS, ((at or name, value), *also), why)


EXT = (("protocol.ext.allow", "always"),)
FETCH = ("fetch", "http://{net}/x.git")

RUNS = (
    _runs("core.fsmonitor", "{run}", "asked by whatever refreshes the index", "status"),
    _runs("core.hooksPath", "{hooks}", "hooks of every command, reference-transaction among them", "tag", "a-tag"),
    _runs("core.sshCommand", "{run}", "instead of ssh", "fetch", "ssh://127.0.0.1/x"),
    _runs("core.gitProxy", "{run}", "to connect by git://", "fetch", "git://127.0.0.1/x"),
    _runs("core.askPass", "{run}", "asked for a password", *FETCH),
    _runs("core.alternateRefsCommand", "{run}", "a fetch with borrowed objects", "rev-list", "--alternate-refs"),
    _runs("core.editor", "{run}", "for messages", "commit", "--allow-empty"),
    _runs("sequence.editor", "{run}", "for a list of commits", "rebase", "-i", "--autostash", "--root"),
    _runs("core.pager", "{run}", "at a terminal"),
    _runs("pager.<cmd>", "{run}", "at a terminal", at="pager.log"),
    _runs("alias.*", "!{run}", "instead of a command that git has not", "own", at="alias.own"),
    _runs("alias.*.command", "!{run}", "the same, in newer versions", at="alias.other.command"),
    _runs("credential.helper", "!{run}", "asked for a password, and told it", *FETCH),
    _runs("credential.<url>.*", "!{run}", "asked for a password, and told it", *FETCH, at="credential.http://{net}.helper"),
    _runs("diff.external", "{run}", "to compare files", "diff"),
    _runs("diff.<driver>.command", "{run}", "to compare files of one kind", "diff", at="diff.own.command"),
    _runs("diff.<driver>.textconv", "{run}", "to make text of files of one kind", "diff", at="diff.own.textconv"),
    _runs("difftool.<tool>.cmd", "{run}", "difftool", "difftool", "-y", "-t", "own", at="difftool.own.cmd"),
    _runs("difftool.<tool>.path", "{run}", "difftool", at="difftool.own.path"),
    _runs("mergetool.<tool>.cmd", "{run}", "mergetool", at="mergetool.own.cmd"),
    _runs("mergetool.<tool>.path", "{run}", "mergetool", at="mergetool.own.path"),
    _runs("guitool.<name>.cmd", "{run}", "git gui", at="guitool.own.cmd"),
    _runs("browser.<tool>.cmd", "{run}", "help and instaweb", at="browser.own.cmd"),
    _runs("browser.<tool>.path", "{run}", "help and instaweb", at="browser.own.path"),
    _runs("man.<tool>.cmd", "{run}", "help", at="man.own.cmd"),
    _runs("man.<tool>.path", "{run}", "help", at="man.own.path"),
    _runs("web.browser", "{run}", "help and instaweb"),
    _runs("help.browser", "{run}", "help"),
    _runs("instaweb.browser", "{run}", "instaweb"),
    _runs("instaweb.httpd", "{run}", "instaweb"),
    _runs("instaweb.modulePath", "{hooks}", "modules of Apache, by instaweb"),
    _runs("filter.<driver>.clean", "{run}", "as files go in", "add", "--renormalize", ".", at="filter.own.clean"),
    _runs("filter.<driver>.smudge", "{run}", "files out", "checkout", "HEAD", "--", "a.txt", at="filter.own.smudge"),
    _runs("filter.<driver>.process", "{run}", "files in and out", "add", "--renormalize", ".", at="filter.own.process"),
    _runs("gpg.program", "{run}", "to sign and to verify", "commit", "--allow-empty", "-S", "-m", "x"),
    _runs("gpg.<format>.program", "{run}", "to sign", "-c", "gpg.format=x509", "tag", "-s", "-m", "x", "t",
          at="gpg.x509.program"),
    _runs("gpg.ssh.defaultKeyCommand", "{run}", "for the key to sign with",
          "-c", "gpg.format=ssh", "commit", "--allow-empty", "-S", "-m", "x"),
    _runs("merge.<driver>.driver", "{run}", "to merge files of one kind", at="merge.own.driver"),
    _runs("interactive.diffFilter", "{run}", "add --patch, in colour"),
    _runs("remote.<name>.uploadpack", "{run}", "at a remote that is a path", "fetch", "own", at="remote.own.uploadpack",
          also=(("remote.own.url", "."),)),
    _runs("remote.<name>.receivepack", "{run}", "at a remote that is a path", "push", "own", "HEAD:x",
          at="remote.own.receivepack", also=(("remote.own.url", "."),)),
    _runs("remote.<name>.vcs", "ext", "which program speaks with the remote", "fetch", "own", at="remote.own.vcs",
          also=(("remote.own.url", "{run}"), *EXT)),
    _runs("remote.<name>.url", "ext::{run}", "also where the name is an address", "fetch", "{remote}calc.git",
          at="remote.{remote}calc.git.url", also=EXT),
    _runs("protocol.<name>.allow", "always", "opens ext::, which is a command line", "fetch", "ext::{run}",
          at="protocol.ext.allow"),
    _runs("protocol.allow", "always", "opens ext::, which is a command line", "fetch", "ext::{run}"),
    _runs("url.<base>.insteadOf", "{remote}", "puts another address, or program, in the place of one",
          "fetch", "{remote}calc.git", at="url.ext::{run} .insteadOf", also=EXT),
    _runs("submodule.<name>.update", "!{run}", "submodule update", at="submodule.own.update"),
    _runs("uploadpack.packObjectsHook", "{run}", "upload-pack; git itself believes one's own config alone"),
    _runs("gc.recentObjectsHook", "{run}", "gc"),
    _runs("hook.<friendly-name>.command", "{run}", "hooks without a file, in newer versions",
          at="hook.own.command", also=(("hook.own.event", "reference-transaction"),)),
    _runs("hook.<friendly-name>.event", "reference-transaction", "when such a hook runs", at="hook.another.event",
          also=(("hook.another.command", "{run}"),)),
    _runs("trailer.<key-alias>.cmd", "{run}", "interpret-trailers", at="trailer.own.cmd"),
    _runs("trailer.<key-alias>.command", "{run}", "interpret-trailers", "interpret-trailers", at="trailer.own.command",
          also=(("trailer.own.key", "Own"),)),
    _runs("tar.<format>.command", "{run}", "archive", "archive", "--format=own", "HEAD", at="tar.own.command"),
    _runs("imap.tunnel", "{run}", "imap-send"),
    _runs("sendemail.<identity>.*", "{run}", "send-email", at="sendemail.own.smtpServer"),
    _runs("sendemail.smtpServer", "{run}", "send-email"),
    _runs("sendemail.ccCmd", "{run}", "send-email"),
    _runs("sendemail.tocmd", "{run}", "send-email"),
    _runs("sendemail.headerCmd", "{run}", "send-email"),
    _runs("rebase.rescheduleFailedExec", "true", "what a rebase runs"),
    _runs("gitcvs.dbDriver", "{run}", "a module of Perl, by cvsserver"),
    _runs("core.fsmonitorHookVersion", "1", "how the program of core.fsmonitor is asked"),
    _runs("difftool.trustExitCode", "true", "difftool"),
)  # fmt: skip
READS = (
    _reads("include.path", "any other file of settings"),
    _reads("includeIf.<condition>.path", "any other file of settings", at="includeIf.gitdir:/.path"),
    _reads("core.excludesFile", "rules of what is ignored; ours went into the sandbox"),
    _reads("core.attributesFile", "attributes"),
    _reads("commit.template", "commit"),
    _reads("blame.ignoreRevsFile", "blame"),
    _reads("mailmap.file", "log, blame"),
    _reads("mailmap.blob", "log, blame", value="HEAD:.mailmap"),
    _reads("sendemail.mailmap.file", "send-email"),
    _reads("sendemail.mailmap.blob", "send-email", value="HEAD:.mailmap"),
    _reads("format.signatureFile", "format-patch"),
    _reads("diff.orderFile", "every comparison"),
    _reads("fsck.skipList", "fsck"),
    _reads("fetch.fsck.skipList", "fetch"),
    _reads("receive.fsck.skipList", "receive-pack"),
    _reads("init.templateDir", "init, with hooks", value="{hooks}"),
    _reads("gpg.ssh.allowedSignersFile", "verification of signatures"),
    _reads("gpg.ssh.revocationFile", "verification of signatures"),
    _reads("user.signingKey", "signing, where it is a key of ssh"),
    _reads("sendemail.aliasesFile", "send-email"),
    _reads("sendemail.smtpsslcertpath", "send-email"),
    _reads("sendemail.smtpSSLClientCert", "send-email"),
    _reads("sendemail.smtpSSLClientKey", "send-email"),
    _reads("gui.spellingDictionary", "git gui"),
    _reads("help.htmlPath", "help"),
    _reads("instaweb.local", "instaweb", value="true"),
    _reads(
        "submodule.<name>.gitdir", "where a submodule's repository is, in newer versions", at="submodule.own.gitdir"
    ),
    _reads("submodule.alternateLocation", "whose objects a new submodule borrows", value="superproject"),
    _reads("attr.tree", "attributes of another tree", value="HEAD"),
    _reads("core.notesRef", "notes beside commits", value="refs/notes/own"),
)
WRITES = (
    _writes("trace2.eventTarget", "every command; git itself believes one's own config alone"),
    _writes("trace2.normalTarget", "every command; git itself believes one's own config alone"),
    _writes("trace2.perfTarget", "every command; git itself believes one's own config alone"),
    _writes("gc.repackFilterTo", "gc"),
    _writes("format.outputDirectory", "format-patch"),
    _writes("gitcvs.logFile", "cvsserver"),
    _writes("gitcvs.dbName", "cvsserver"),
    _writes("fsmonitor.socketDir", "the daemon that watches files"),
    _writes("core.logAllRefUpdates", "logs of refs", value="always"),
    _writes("core.sharedRepository", "whose files what is written is", value="0777"),
    _writes("gc.auto", "gc behind other commands, which runs on", value="1"),
    _writes("maintenance.auto", "gc behind other commands, which runs on", value="true"),
    _writes("fetch.writeCommitGraph", "a file beside the objects", value="true"),
    _writes("core.splitIndex", "files beside the index", value="true"),
    _writes("core.untrackedCache", "the index", value="true"),
    _writes("rerere.enabled", "how conflicts were settled", value="true"),
)
SENDS = (
    _sends("http.proxy", "http://{net}", "everything, with the token in it"),
    _sends("http.<url>.*", "http://{net}", "everything of one address", at="http.{remote}.proxy"),
    _sends("remote.<name>.proxy", "http://{net}", "everything of one remote", at="remote.{remote}calc.git.proxy"),
    _sends("http.curloptResolve", "*:80:127.0.0.1", "another machine under the same name"),
    _sends("http.extraHeader", "X-Own: canary", "a header more"),
    _sends("http.followRedirects", "true", "the token, to where the remote points"),
    _sends("http.sslVerify", "false", "the token, to anybody"),
    _sends("http.sslBackend", "own", "another library"),
    _sends("http.schannelCheckRevoke", "false", "certificates that were taken back"),
    _sends("http.schannelUseSSLCAInfo", "true", "certificates"),
    _sends("http.sslCAInfo", "{file}", "whose certificates are believed"),
    _sends("http.sslCAPath", "{hooks}", "whose certificates are believed"),
    _sends("http.sslCert", "{file}", "a certificate of one's own"),
    _sends("http.sslCertType", "PEM", "a certificate of one's own"),
    _sends("http.sslKey", "{file}", "its key"),
    _sends("http.sslKeyType", "PEM", "its key"),
    _sends("http.pinnedPubkey", "{file}", "whose key is believed"),
    _sends("http.proxySSLCAInfo", "{file}", "whose certificates are believed of a proxy"),
    _sends("http.proxySSLCert", "{file}", "a certificate of one's own"),
    _sends("http.proxySSLKey", "{file}", "its key"),
    _sends("http.cookieFile", "{file}", "cookies"),
    _sends("http.saveCookies", "true", "cookies, into that file"),
    _sends("http.delegation", "always", "one's ticket of Kerberos"),
    _sends("http.emptyAuth", "true", "one's ticket of Kerberos"),
    _sends("http.proactiveAuth", "auto", "a password before it is asked for"),
    _sends("credential.username", "canary", "who one is"),
    _sends("credential.useHttpPath", "true", "which password"),
    _sends("credential.protectProtocol", "false", "line ends in what helpers are told"),
    _sends("credential.sanitizePrompt", "false", "what a prompt shows"),
    _sends("url.<base>.pushInsteadOf", "{remote}", "an address for a push", at="url.http://{net}/.pushInsteadOf"),
    _sends("remote.<name>.pushurl", "http://{net}/x", "an address for a push", at="remote.{remote}calc.git.pushurl"),
    _sends("remote.<name>.promisor", "true", "objects are fetched as they are missed", at="remote.own.promisor",
           also=(("remote.own.url", "http://{net}/x"), ("extensions.partialClone", "own"))),
    _sends("remote.<name>.partialclonefilter", "blob:none", "objects are fetched as they are missed",
           at="remote.own.partialCloneFilter"),
    _sends("promisor.acceptFromServer", "all", "remotes that a remote names"),
    _sends("promisor.acceptFromServerUrl", "http://{net}/x", "remotes that a remote names"),
    _sends("bundle.<id>.uri", "http://{net}/x", "packs from another host", at="bundle.own.uri"),
    _sends("fetch.bundleURI", "http://{net}/x", "packs from another host"),
    _sends("transfer.bundleURI", "true", "packs from another host"),
    _sends("transfer.credentialsInUrl", "allow", "passwords in addresses"),
    _sends("submodule.<name>.url", "http://{net}/x", "a submodule from another host", at="submodule.own.url"),
    _sends("submodule.recurse", "true", "submodules' remotes, too"),
    _sends("fetch.recurseSubmodules", "true", "submodules' remotes, too"),
    _sends("push.recurseSubmodules", "on-demand", "submodules' remotes, too"),
    _sends("submodule.<name>.fetchRecurseSubmodules", "true", "submodules' remotes, too",
           at="submodule.own.fetchRecurseSubmodules"),
    _sends("imap.host", "http://{net}", "imap-send"),
    _sends("branch.<name>.remote", "http://{net}/x", "fetch and pull without a name", at="branch.main.remote"),
    _sends("branch.<name>.pushRemote", "http://{net}/x", "push without a name", at="branch.main.pushRemote"),
    _sends("remote.pushDefault", "http://{net}/x", "push without a name"),
)  # fmt: skip
REFUSED = {
    "core.worktree": "where the files are: a folder that says another one is not taken (test_stolen_bytes)",
    "core.bare": "that there are no files: such a folder is not taken (test_own_layouts)",
    "extensions.objectFormat": "SHA-256 is not taken (test_own_layouts)",
    "extensions.refStorage": "refs in another form, or place, are not taken (test_own_layouts)",
    "extensions.*": "of these two one is believed each; no other is read (test_own_layouts, test_keys)",
    "extensions.worktreeConfig": "config.worktree is not read: every row is planted there as well (test_keys)",
}
"""Judged in another way."""
BELIEVED = ("core.fileMode", "core.autocrlf", "core.eol", "core.symlinks", "core.ignoreCase")
"""Of the repository's own config: how its files are to be read."""
ROWS = (*RUNS, *READS, *WRITES, *SENDS)
