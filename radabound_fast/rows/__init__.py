"""What an array becomes: labels, packed losses, signs, signed sums and their extremes."""
