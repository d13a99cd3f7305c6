"""What the system has against a file, a folder or an address, in our words and not in the system's language.

Pure; any thread. A catalogue of sentences knows each of these, in whatever sentence it stands.
"""

from __future__ import annotations

import errno

_WORDS = {
    ("ENOENT",): "it is not there",
    ("EACCES", "EPERM"): "the system does not allow it",
    ("EISDIR",): "it is a folder",
    ("ENOTDIR",): "a part of its path is no folder",
    ("EEXIST",): "something else is in its place",
    ("ENOTEMPTY",): "the folder is not empty",
    ("ENOSPC", "EDQUOT"): "the disk is full",
    ("EROFS",): "the disk can only be read",
    ("EIO",): "the disk has failed",
    ("EFBIG",): "it is too large for this disk",
    ("ENODEV", "ENXIO", "ESTALE", "ENOTCONN"): "its disk is gone",
    ("ENAMETOOLONG",): "its name is too long",
    ("EINVAL",): "the system does not know what to do with it",
    ("ELOOP",): "its links lead round in a circle",
    ("EMFILE", "ENFILE"): "too many files are open",
    ("ENOMEM",): "there is no memory left",
    ("EBUSY", "ETXTBSY"): "another program uses it",
    ("ECONNREFUSED",): "nobody listens there",
    ("ECONNRESET", "ECONNABORTED", "EPIPE"): "the connection was lost",
    ("ETIMEDOUT",): "it did not answer in time",
    ("ENETUNREACH", "EHOSTUNREACH"): "there is no way to it",
}
"""By the system's own names; Windows has letters before some of them."""


def system_fault(error: OSError) -> str:
    """What is wrong; the system's own name for what we have no words for."""
    if error.errno is None:
        return "the log has the particulars"
    name = errno.errorcode.get(error.errno, str(error.errno))
    for names, words in _WORDS.items():
        if name.endswith(names):
            return words
    return f"the system calls it {name}"
