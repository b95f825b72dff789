"""What a player believes of opponents who are counted, where one count for each state is too little or too much."""
