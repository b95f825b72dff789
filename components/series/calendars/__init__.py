"""Calendars of a series: dates as text, equal steps between them, and the dates that follow."""
