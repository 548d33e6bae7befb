"""Benchmarks: side by side with peers and with the physical floor, in one run. Only the ratios count."""
