"""Catalogue of components: lists, pages of single components, tab completion."""
