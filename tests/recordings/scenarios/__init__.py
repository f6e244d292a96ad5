"""The requests of the recorded scenarios, a file for each part of S3."""

import importlib
import pkgutil


def load() -> None:
    """Imports all files, so that their scenarios are known."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
