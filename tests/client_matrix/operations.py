"""The columns of the compatibility matrix: what a client is asked to do.

A client has a method of the same name for each operation that it offers.
"""

# What tools and SDKs do, in the order in which it is run and printed.
OPERATIONS = {
    "buckets": "create, list and remove a bucket",
    "objects": "write, read, inspect and overwrite objects: empty, small, with names that need encoding",
    "large": "write and read 17 MB, in parts where the client does that",
    "stream": "write 9 MB whose length the client does not know before the end, such as a pipe",
    "ranges": "read a part of an object",
    "lists": "list 1 205 objects, and the folders of a bucket",
    "presigned": "make URLs that download and upload without a key",
    "delete": "delete one object",
    "batch": "delete 30 objects, in one request where the client does that",
    "copy": "copy an object of 1 KB and one of 70 MB within the store",
    "versions": "switch versioning on, list, read and remove versions",
    "locks": "retention and legal holds",
    "tags": "tags of objects and buckets",
}

# What programs do that keep their data in S3.
PROGRAM_OPERATIONS = {
    "write": "put their data into a bucket",
    "read": "read it back and compare it",
    "remove": "expire or remove data",
}

ALL = OPERATIONS | PROGRAM_OPERATIONS

# The failure of operations on what could not be written.
NOT_WRITTEN = "nothing was written"
