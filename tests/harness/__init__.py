"""The shared code of the suites: an own SigV4 signer, raw HTTP over sockets, a small S3 client and the server's process."""
