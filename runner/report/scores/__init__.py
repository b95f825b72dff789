"""Scores in the cells of a report, from records and from earlier reports."""
