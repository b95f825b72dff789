"""Networks of several tasks, as Boustati's tables have them."""
