"""Catalogue of components: lists, descriptions of single components, tab completion."""
