"""A real browser and a real Jupyter on this machine, for pictures, benchmarks and tests; nothing leaves the machine.

They need the extra `test` (Playwright) and an installed Chromium or Chrome. Importing this package loads neither.
"""
