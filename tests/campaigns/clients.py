"""The compatibility matrix; see client_matrix/run.py."""

from client_matrix.run import main

__all__ = ["main"]
