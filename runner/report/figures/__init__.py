"""Figures of reports, drawn for print and, if possible, as data for interactive figures."""
