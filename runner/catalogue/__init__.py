"""What there is: lists, pages of single components, tab completion."""
