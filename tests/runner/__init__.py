"""What `./test` is made of: sections, the schedule of their steps, cached tools, and the report."""
