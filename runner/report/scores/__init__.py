"""Scores behind the cells of a report: of records here, and of earlier reports."""
