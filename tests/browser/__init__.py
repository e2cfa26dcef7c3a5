"""A package, so that its browser is closed when its last test has run: while Playwright runs, asyncio cannot."""
