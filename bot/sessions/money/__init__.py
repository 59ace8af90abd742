"""What a turn may spend: prices, budgets, the limits over many turns, and the word that it is nearly gone."""
