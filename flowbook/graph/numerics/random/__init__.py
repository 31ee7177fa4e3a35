"""Random numbers, as arrays: Philox, and the variates made from its words."""
