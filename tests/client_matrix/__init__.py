"""The compatibility matrix of docs/clients.md: real clients against a strict and an extended server."""
