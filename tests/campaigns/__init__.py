"""Long-running tests, started with `tests/campaign NAME`. `./test` runs the short versions in this directory."""
