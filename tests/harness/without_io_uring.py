"""Runs a command that cannot use io_uring, as with a container's default seccomp profile.

A seccomp filter of four instructions answers EPERM to `io_uring_setup`, whose number is the same on every
architecture of this century; nothing outside the command is changed. The variable REFUSED_CALL names the number of
another system call to refuse instead.
"""

import ctypes
import os
import struct
import sys

IO_URING_SETUP = 425
PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE_WITH_EPERM = 0x7FFF0000, 0x00050001


class Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def main() -> None:
    """Installs the filter and executes the command."""
    instructions = b"".join(
        struct.pack("<HBBI", *fields)
        for fields in (
            (LOAD_WORD, 0, 0, 0),
            (JUMP_IF_EQUAL, 0, 1, int(os.environ.get("REFUSED_CALL", IO_URING_SETUP))),
            (RETURN, 0, 0, REFUSE_WITH_EPERM),
            (RETURN, 0, 0, ALLOW),
        )
    )
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(4, instructions)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "seccomp")
    os.execvp(sys.argv[1], sys.argv[1:])


main()
