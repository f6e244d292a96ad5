"""Recorded answers of AWS S3 as a test of the server: the data, the comparison, the scenarios, and the known differences."""
