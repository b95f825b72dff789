"""The kinds of problem: data, how to see them, how to score a posterior on them and draw it."""
