"""The money of turns: prices, budgets, limits over many turns, and the warning before they run out."""
