"""The parts of `./test`: sections, the schedule of their steps, cached tools, and the report."""
