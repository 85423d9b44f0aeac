"""What `radabound audit` reads and writes: predictions, losses, labels, answers and figures."""
