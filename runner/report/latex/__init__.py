"""LaTeX tables, figures and references of a study."""
