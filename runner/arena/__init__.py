"""The arena: suites of problems on which a method is compared with all others."""
